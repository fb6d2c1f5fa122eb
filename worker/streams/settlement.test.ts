import { describe, expect, it } from "vitest";
import { InferenceError, type ErrorCode } from "#shared/errors.js";
import type { Tensor } from "#shared/frame.js";
import { delivery } from "../../test/fixtures/deliveries.js";
import type { Held } from "../lane/holdings.js";
import { errorRecord, failed, historyOf, sealed, succeeded } from "./settlement.js";

const history = Int32Array.of(1, 2, 3);

function heldBy(sequence: string | undefined, start = false): Held {
  return { delivery: delivery("1-0", { sequence, step: 2, number: 2, start }) } as Held;
}

describe("a stream whose worker ended between its final record and its outcome", () => {
  it("ends as that worker would have settled it: with the history of its conversation", () => {
    const final = '{"index":0,"choices":[],"final":true,"reason":"finished"}';
    const held = heldBy("default:u1");
    const usual = succeeded(held, { kind: "result", body: Buffer.from(final) }, history);
    const settled = sealed(held, [final], history);
    // Each run of a turn writes its history under a name of its own.
    expect(settled.checkpoint?.version).not.toBe(usual.checkpoint?.version);
    expect(settled).toMatchObject({
      outcome: usual.outcome,
      state: { action: "put", version: settled.checkpoint?.version, checkpoint: settled.checkpoint?.frame },
      checkpoint: { tensors: usual.checkpoint?.tensors },
    });
  });

  it.each<ErrorCode>(["poison_request", "expired", "cancelled", "model_error"])(
    "keeps the consequences of a failure (%s)",
    (code) => {
      const error = new InferenceError(code, "why");
      const records = [errorRecord(0, error)];
      for (const held of [heldBy(undefined), heldBy("default:u1"), heldBy("default:u1", true)]) {
        expect(sealed(held, records, history)).toEqual(failed(held, error));
      }
    },
  );
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

  it("is none at the first turn", () => {
    expect(historyOf(undefined, model)).toBeUndefined();
  });

  // Clients may import anything as the history of a conversation.
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
    expect(historyOf(tensors, model)).toMatchObject({ code: "state_corrupt" });
  });
});
