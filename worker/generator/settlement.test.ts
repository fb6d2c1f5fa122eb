import { describe, expect, it } from "vitest";
import type { Delivery } from "#shared/contract/entry.js";
import { InferenceError, type ErrorCode } from "#shared/errors.js";
import type { Held } from "../intake/hand.js";
import { errorRecord, failed, sealed, succeed } from "./settlement.js";

const history = Int32Array.of(1, 2, 3);

function heldBy(sequence: string | undefined, start = false): Held {
  const frame = Buffer.alloc(0);
  const place = { entry: "1-0", request: "r", sequence, step: 2, start, end: false, from: "" };
  const delivery: Delivery = { ...place, deadlineAt: 0, gateway: "g", outcomeTtlMs: 1, frame };
  return { delivery } as Held;
}

describe("a stream whose worker ended between its final record and its outcome", () => {
  it("ends as that worker would have settled it: with the history of its conversation", () => {
    const final = '{"index":0,"choices":[],"final":true,"reason":"finished"}';
    const held = heldBy("default:u1");
    expect(sealed(held, [final], history)).toEqual(
      succeed(held, { kind: "result", body: Buffer.from(final) }, history),
    );
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
