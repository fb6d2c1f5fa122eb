import { describe, expect, it } from "vitest";
import { InferenceError, type ErrorCode } from "#shared/errors.js";
import { delivery } from "../../test/fixtures/deliveries.js";
import type { Held } from "../lane/holdings.js";
import { errorRecord, failed, sealed, succeeded } from "./settlement.js";

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
    // Each run of a turn names its history anew.
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
