import { describe, expect, it } from "vitest";
import { jobMeta } from "#shared/contract/job-meta.js";
import { encodeFrame, type FrameMeta } from "#shared/frame.js";
import type { Delivery } from "#shared/queue/entry.js";
import { delivery } from "../../test/fixtures/deliveries.js";
import { hold, Holdings, unbatched, type Held } from "./holdings.js";

function framed(entry: string, shape: readonly number[] = [1], meta: FrameMeta = {}): Delivery {
  const count = shape.reduce((product, dim) => product * dim, 1);
  const frame = encodeFrame(meta, [{ name: "x", datatype: "UINT8", shape, data: Buffer.alloc(count) }]);
  return delivery(entry, { frame });
}

function held(entry: string, meta: FrameMeta = {}): Held {
  return hold(framed(entry, [1], meta), Infinity, unbatched, Promise.resolve({ kind: "found", tensors: undefined }));
}

const entries = (steps: readonly Held[]) => steps.map((step) => step.delivery.entry);

describe("Holdings", () => {
  it("tell fresh steps from suspects, each oldest first", () => {
    const holdings = new Holdings();
    holdings.hold([held("1"), held("2")], "fresh");
    holdings.hold([held("3")], "suspect");
    holdings.hold([held("4")], "fresh");
    expect(entries(holdings.waiting)).toEqual(["1", "2", "4"]);
    expect(entries(holdings.suspects)).toEqual(["3"]);
  });

  it("keep what runs, though it no longer waits", () => {
    const holdings = new Holdings();
    holdings.hold([held("1"), held("2")], "fresh");
    holdings.take(holdings.waiting.slice(0, 1));
    expect(entries(holdings.waiting)).toEqual(["2"]);
    expect(holdings.unbegun()).toMatchObject([{ key: "2" }]);
    expect(holdings.keys()).toEqual(["1", "2"]);
  });

  it("do not take a call of an ensemble for a step with the same key", () => {
    const holdings = new Holdings();
    holdings.hold([held("1")], "fresh");
    const call = { isOver: () => false, answered: () => Promise.resolve(), ended: () => undefined };
    holdings.take([{ ...held("1"), call }]);
    expect(entries(holdings.waiting)).toEqual(["1"]);
    holdings.take(holdings.waiting);
    holdings.putBack([{ ...held("1"), call }]);
    expect(entries(holdings.waiting)).toEqual([]);
  });

  it("forget what is dropped, running or not", () => {
    const holdings = new Holdings();
    holdings.hold([held("1"), held("2")], "suspect");
    holdings.take(holdings.suspects.slice(0, 1));
    holdings.drop(["1", "2", "unknown"]);
    expect([holdings.has("1"), holdings.has("2")]).toEqual([false, false]);
    expect(holdings.keys()).toEqual([]);
  });
});

it("say how many of the steps run jobs, each once, and which steps have left", () => {
  const said: number[] = [];
  const gone: string[] = [];
  const holdings = new Holdings(undefined, undefined, {
    holds: (jobs) => said.push(jobs),
    gone: ({ key }) => gone.push(key),
  });
  const job = (entry: string) => held(entry, jobMeta);
  holdings.hold([job("1"), held("2"), job("3")], "fresh");
  expect(said.at(-1)).toBe(2);
  holdings.take(holdings.waiting);
  holdings.hold([job("1")], "suspect");
  expect(said.at(-1)).toBe(2);
  holdings.drop(["1", "1", "2", "unknown"]);
  expect(said.at(-1)).toBe(1);
  expect(gone).toEqual(["1", "1", "2"]);
  holdings.leave([delivery("3")], 100);
  expect(said.at(-1)).toBe(0);
  expect(gone).toEqual(["1", "1", "2", "3"]);
});

describe("what was left without an end", () => {
  it("is remembered until it is held again or dropped", () => {
    const holdings = new Holdings();
    holdings.hold([held("1"), held("2"), held("3")], "fresh");
    holdings.leave([delivery("1"), delivery("2")], 100);
    holdings.leave([delivery("3")], 200);
    expect(holdings.keys()).toEqual([]);
    expect(holdings.leftBy(99)).toEqual([]);
    expect(holdings.leftBy(150)).toMatchObject([{ key: "1" }, { key: "2" }]);
    holdings.hold([held("1")], "suspect");
    holdings.drop(["2"]);
    expect(holdings.leftBy(300)).toMatchObject([{ key: "3" }]);
  });
});

describe("a held step", () => {
  const of = (shape: readonly number[], batched: boolean) => {
    const batching = { batched, shared: new Set<string>() };
    const { rows, shapeKey } = hold(framed("1", shape), 0, batching, Promise.resolve({ kind: "unavailable" }));
    return { rows, shapeKey };
  };

  it("may share a batch with steps of other numbers of rows", () => {
    expect(of([3, 2], true)).toEqual({ rows: 3, shapeKey: "x[2]" });
    expect(of([3, 2], false)).toEqual({ rows: 1, shapeKey: "x[3,2]" });
  });

  it("shares a batch only with steps that give the same of what a batch has once", () => {
    const of = (rate: number) => {
      const data = Buffer.from([rate]);
      const frame = encodeFrame({}, [
        { name: "sr", datatype: "UINT8", shape: [], data },
        { name: "x", datatype: "UINT8", shape: [2, 1], data: Buffer.alloc(2) },
      ]);
      const batching = { batched: true, shared: new Set(["sr"]) };
      return hold({ ...delivery("1"), frame }, 0, batching, Promise.resolve({ kind: "unavailable" }));
    };
    expect(of(8).rows).toBe(2);
    expect(of(8).shapeKey).toBe(of(8).shapeKey);
    expect(of(8).shapeKey).not.toBe(of(16).shapeKey);
  });

  it("is refused where its frame cannot be parsed", () => {
    const spoiled = { ...delivery("1"), frame: Buffer.from("no frame") };
    expect(() => hold(spoiled, 0, unbatched, Promise.resolve({ kind: "unavailable" }))).toThrow();
  });
});
