import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { weightBytes } from "./weights.js";

const folder = mkdtempSync(join(tmpdir(), "weights-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("counts a model's file and its external data, and no other file", async () => {
  const files = { "model.onnx": 3, "model.onnx_data": 20, "model.onnx.data.1": 100, "tokenizer.json": 5_000 };
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), "x".repeat(bytes));
  expect(await weightBytes(join(folder, "model.onnx"))).toBe(123);
});
