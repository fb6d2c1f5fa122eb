import { describe, expect, it } from "vitest";
import { decodeFrame, encodeFrame, type Tensor } from "../frame.js";
import { readOutcome, storeOutcome } from "./outcome.js";
import { readTimings, writeTimings } from "./timings.js";

const timings = { queueMs: 12.3, runMs: 0.4, boot: "0123456789ab" };
const text = writeTimings(timings);
const tensor: Tensor = { name: 'x,"t":[1]', datatype: "UINT8", shape: [2], data: Buffer.from([1, 2]) };

describe("timings", () => {
  it("are read as they were written, in tenths of a ms", () => {
    expect(readTimings(text)).toEqual(timings);
    expect(readTimings(writeTimings({ ...timings, queueMs: 1.25, runMs: 1.24 }))).toMatchObject({ runMs: 1.2 });
  });

  it.each([
    [0, 0],
    [-5, 0],
    [-Infinity, 0],
    [Infinity, 99_999_999],
    [123_456.7, 123_457],
  ])("of %d ms say %d", (ms, said) => {
    expect(readTimings(writeTimings({ queueMs: ms, runMs: ms, boot: "ab" }))).toEqual({
      queueMs: said,
      runMs: said,
      boot: "ab",
    });
  });

  it("take at most 40 bytes of a head", () => {
    for (const ms of [0.1, 99_999.94, 99_999.96, 1e9]) {
      const note = writeTimings({ queueMs: ms, runMs: ms, boot: timings.boot });
      const more = encodeFrame({}, [tensor], note).length - encodeFrame({}, [tensor]).length;
      expect(more).toBeLessThanOrEqual(40);
    }
  });

  it.each([undefined, "", "[]", "[1]", '["1",2,"ab"]', '[1,2,"ab",3]', '[1,2,"no boot"]', "null"])(
    "of another form are none: %s",
    (other) => {
      expect(readTimings(other)).toBeUndefined();
    },
  );
});

describe("an outcome with timings", () => {
  it("is the same frame beside them", () => {
    const meta = { sequence_step: 3 };
    const frame = encodeFrame(meta, [tensor], text);
    expect(decodeFrame(frame)).toEqual({ meta, tensors: [tensor], note: text });
    expect(decodeFrame(encodeFrame(meta, [tensor]))).toEqual({ meta, tensors: [tensor] });
    expect(decodeFrame(encodeFrame({ t: [1, "x"] }, [], text))).toEqual({
      meta: { t: [1, "x"] },
      tensors: [],
      note: text,
    });
  });

  it("has a head that earlier versions read", () => {
    const frame = encodeFrame({ a: 1 }, [tensor], text);
    const head = JSON.parse(frame.toString("utf8", 4, 4 + frame.readUInt32LE(0))) as {
      meta: unknown;
      tensors: unknown[];
    };
    expect(head).toMatchObject({ meta: { a: 1 }, tensors: [{ name: tensor.name, bytes: 2 }] });
  });

  it("may be an error", () => {
    const error = { kind: "error", code: "model_error", message: "no" } as const;
    const { kind, body } = storeOutcome({ ...error, note: text });
    expect(JSON.parse(body.toString())).toMatchObject({ code: "model_error", message: "no" });
    expect(readOutcome(kind, body)).toEqual({ ...error, note: text });
    expect(readOutcome(kind, storeOutcome(error).body)).toEqual(error);
  });
});
