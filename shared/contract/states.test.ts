import { describe, expect, it } from "vitest";
import { servedModel } from "../../test/fixtures/served-models.js";
import type { Tensor } from "../frame.js";
import { carriedStateFault, historyOf, statesFault, type StateShape } from "./states.js";

const numbers: StateShape = { input: "S", datatype: "FP16", dims: [2, -1] };
const texts: StateShape = { input: "T", datatype: "BYTES", dims: [2] };

function text(...strings: readonly string[]): Buffer {
  return Buffer.concat(
    strings.map((one) => Buffer.concat([Buffer.from(Uint32Array.of(Buffer.byteLength(one)).buffer), Buffer.from(one)])),
  );
}

const s: Tensor = { name: "S", datatype: "FP16", shape: [1, 2, 3], data: Buffer.alloc(12) };
const t: Tensor = { name: "T", datatype: "BYTES", shape: [1, 2], data: text("a", "bc") };
const spoilt = (data: Buffer): Tensor => ({ ...t, data });

describe("a state that goes into a batch", () => {
  it.each<[string, Tensor[]]>([
    ["of the shapes that the configuration names", [s, t]],
    ["with a free dimension of 0", [{ ...s, shape: [1, 2, 0], data: Buffer.alloc(0) }, t]],
    ["of other strings", [s, spoilt(text("", "ü"))]],
  ])("is one %s", (_, tensors) => {
    expect(statesFault([numbers, texts], true, tensors)).toBeUndefined();
  });

  it.each<[string, Tensor[]]>([
    ["two rows", [{ ...s, shape: [2, 2, 3], data: Buffer.alloc(24) }, t]],
    ["no row", [{ ...s, shape: [0, 2, 3], data: Buffer.alloc(0) }, t]],
    ["no batch dimension", [{ ...s, shape: [2, 3] }, t]],
    ["another fixed dimension", [{ ...s, shape: [1, 3, 2] }, t]],
    ["one dimension more", [{ ...s, shape: [1, 2, 3, 1] }, t]],
    ["fewer bytes than its shape", [{ ...s, data: Buffer.alloc(11) }, t]],
    ["more bytes than its shape", [{ ...s, data: Buffer.alloc(14) }, t]],
    ["another name", [{ ...s, name: "s" }, t]],
    ["another datatype of as many bytes", [{ ...s, datatype: "BF16" }, t]],
    ["its tensors in another order", [t, s]],
    ["a tensor twice", [s, s]],
    ["a tensor too few", [s]],
    ["a tensor too many", [s, t, t]],
    ["a string too few", [s, spoilt(text("a"))]],
    ["a string too many", [s, spoilt(text("a", "b", "c"))]],
    ["a string that ends after the bytes", [s, spoilt(text("a", "bc").subarray(0, 10))]],
    ["a length that ends after the bytes", [s, spoilt(Buffer.concat([text("a"), Buffer.alloc(3)]))]],
    ["a string that no model can be given", [s, spoilt(text("a", "b\0c"))]],
  ])("is refused with %s", (_, tensors) => {
    expect(statesFault([numbers, texts], true, tensors)).toEqual(expect.any(String));
  });

  it("may be a scalar if its graph has no dimensions", () => {
    const scalar: Tensor = { name: "S", datatype: "FP32", shape: [], data: Buffer.alloc(4) };
    const state: StateShape = { input: "S", datatype: "FP32", dims: [1] };
    expect(statesFault([state], false, [scalar])).toBeUndefined();
    expect(statesFault([{ ...state, dims: [2] }], false, [scalar])).toContain("[2] is wanted");
    expect(statesFault([state], true, [scalar])).toContain("[1,1] is wanted");
  });
});

describe("a state that a client brings", () => {
  const state = { input_name: "S", output_name: "N", data_type: "TYPE_FP16", dims: [2, -1], initial_state: [] };
  const model = servedModel("m", { maxBatchSize: 4, config: { sequence_batching: { state: [state] } } });

  it("is compared with the announced configuration", () => {
    expect(carriedStateFault(model, [s], 12)).toBeUndefined();
    expect(carriedStateFault(model, [{ ...s, shape: [2, 2, 3], data: Buffer.alloc(24) }], 24)).toContain("[1,2,-1]");
    expect(carriedStateFault({ ...model, maxBatchSize: 0 }, [s], 12)).toContain("[2,-1] is wanted");
    expect(carriedStateFault(servedModel("m", { config: {} }), [s], 12)).toContain("0 states");
  });

  it("is bounded, also where a dimension of 0 leaves it without a byte", () => {
    expect(carriedStateFault(model, [s], 11)).toBe("would exceed 11 bytes");
    const hollow = { ...s, shape: [1, 0, 2 ** 50], data: Buffer.alloc(0) };
    expect(carriedStateFault(model, [hollow], 1 << 24)).toContain("would exceed");
  });
});

describe("the history that a turn continues", () => {
  const model = { contextLength: 4, vocabSize: 10 };
  const tensor = (...tokens: number[]): Tensor => {
    const data = Buffer.from(Int32Array.from(tokens).buffer);
    return { name: "history", datatype: "INT32", shape: [tokens.length], data };
  };

  it.each<[string, number[]]>([
    ["no tokens", []],
    ["the first and the last of the vocabulary", [0, 9]],
    ["as many as the context has", [1, 2, 3, 4]],
  ])("may have %s", (_, tokens) => {
    expect(historyOf([tensor(...tokens)], model)).toEqual(Int32Array.from(tokens));
  });

  it.each<[string, Tensor[]]>([
    ["a token below 0", [tensor(1, -1)]],
    ["a token past the vocabulary", [tensor(10)]],
    ["a token of many digits", [tensor(2_000_000_000)]],
    ["more tokens than the context has", [tensor(1, 2, 3, 4, 5)]],
    ["no tensor", []],
    ["two tensors", [tensor(1), tensor(1)]],
    ["another tensor", [{ name: "x", datatype: "UINT8", shape: [5], data: Buffer.from([1, 0, 0, 0, 9]) }]],
    ["another name", [{ ...tensor(1), name: "x" }]],
    ["another type", [{ ...tensor(1), datatype: "UINT32" }]],
    ["another shape", [{ ...tensor(1, 2), shape: [1, 2] }]],
    ["another size", [{ ...tensor(1, 2), shape: [3] }]],
  ])("is refused with %s", (_, tensors) => {
    expect(historyOf(tensors, model)).toEqual(expect.any(String));
  });
});
