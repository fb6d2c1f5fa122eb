import { describe, expect, it } from "vitest";
import { servedModel } from "../../test/fixtures/served-models.js";
import type { InferenceRequest } from "../admission/inference.js";
import { answerDigest } from "./digest.js";

const input = (name: string, shape: readonly number[], text: string) => ({
  name,
  datatype: "BYTES" as const,
  shape,
  data: Buffer.from(text),
});

function request(more: Partial<InferenceRequest> = {}): InferenceRequest {
  return {
    model: servedModel("m"),
    tenant: "acme",
    sequence: undefined,
    idempotencyKey: undefined,
    deadlineMs: 1_000,
    under: () => request(more),
    inputs: [input("A", [2], "ab"), input("B", [1], "c")],
    outputs: ["X", "Y"],
    parameters: { tone: 1 },
    ...more,
  };
}

const usual = answerDigest(request());

describe("the digest of a request", () => {
  it.each<readonly [string, Partial<InferenceRequest>]>([
    ["the tenant", { tenant: "globex" }],
    ["the model", { model: servedModel("n") }],
    ["the version", { model: servedModel("m", { version: "2" }) }],
    ["the files", { model: servedModel("m", { digest: "b" }) }],
    ["a name", { inputs: [input("A", [2], "ab"), input("C", [1], "c")] }],
    ["a type", { inputs: [{ ...input("A", [2], "ab"), datatype: "INT8" }, input("B", [1], "c")] }],
    ["a shape", { inputs: [input("A", [2, 1], "ab"), input("B", [1], "c")] }],
    ["a byte", { inputs: [input("A", [2], "ac"), input("B", [1], "c")] }],
    ["the end of an input", { inputs: [input("A", [2], "a"), input("B", [1], "bc")] }],
    ["an input more", { inputs: [input("A", [2], "ab"), input("B", [1], "c"), input("C", [0], "")] }],
    ["the outputs", { outputs: ["X"] }],
    ["the order of the outputs", { outputs: ["Y", "X"] }],
    ["a parameter", { parameters: { tone: 2 } }],
    ["the type of a parameter", { parameters: { tone: "1" } }],
    ["a whole number beyond a double's", { parameters: { tone: 1n } }],
    ["another parameter", { parameters: { tone: 1, pitch: 1 } }],
  ])("is another one for %s", (_, more) => {
    expect(answerDigest(request(more))).not.toBe(usual);
  });

  it.each<readonly [string, Partial<InferenceRequest>]>([
    ["deadline", { deadlineMs: 5 }],
    ["priority", { queue: { level: 2, rejectMs: 1, delayMs: undefined, mostQueued: 1 } }],
    ["warnings of its worker", { model: servedModel("m", { warnings: ["w"], takes: 3 }) }],
  ])("is the same whatever the %s", (_, more) => {
    expect(answerDigest(request(more))).toBe(usual);
  });

  it("is the same for parameters in any order", () => {
    const [one, other] = [
      { a: 1, b: "x" },
      { b: "x", a: 1 },
    ].map((parameters) => answerDigest(request({ parameters })));
    expect(one).toBe(other);
  });
});
