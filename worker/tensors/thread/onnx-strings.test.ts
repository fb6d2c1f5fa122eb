import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { mayHoldOtherBytes } from "./onnx-strings.js";

const root = join(import.meta.dirname, "../../..");
const file = (model: string): Buffer => readFileSync(join(root, model, "1/model.onnx"));

describe("mayHoldOtherBytes", () => {
  it.each([
    "test/fixtures/models/echo-bytes",
    "test/fixtures/models/bytes-memory",
    "infra/models/simple",
    "infra/models/word-lstm",
  ])("finds only UTF-8 in %s", (model) => {
    expect(mayHoldOtherBytes(file(model))).toBe(false);
  });

  it("finds a string that is not UTF-8", () => {
    expect(mayHoldOtherBytes(file("test/fixtures/models/bytes-labels"))).toBe(true);
  });

  it.each([
    ["a file cut short", file("infra/models/simple").subarray(0, -1)],
    ["a file of another format", Buffer.from("ORTM, or anything else")],
  ])("knows nothing of %s", (_, bytes) => {
    expect(mayHoldOtherBytes(bytes)).toBe(true);
  });
});
