import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { external, model, nested } from "../../../infra/tutorial/onnx-file.mjs";
import { hasExternalData, mayHoldOtherBytes } from "./onnx-search.js";

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

describe("hasExternalData", () => {
  const weights = external("W", [2], "weights");
  const inNode = nested(1, nested(5, nested(1, "value"), weights));
  const inBranch = nested(1, nested(5, nested(1, "then_branch"), nested(6, weights)));

  it.each([
    ["an initializer", weights],
    ["an attribute", inNode],
    ["a subgraph", inBranch],
  ])("finds it in %s", (_, part) => {
    expect(hasExternalData(model("g", [part]))).toBe(true);
  });

  it("finds none in a model whose file has its weights", () => {
    expect(hasExternalData(file("infra/models/word-lstm"))).toBe(false);
  });
});
