import { describe, expect, it } from "vitest";
import type { Fleet } from "../../gateway/answers.js";
import { noticesOf } from "./amiss.js";

const worker = (name: string, failed: Fleet["workers"][number]["failed"] = []): Fleet["workers"][number] => ({
  name,
  host: "h",
  pid: 1,
  started_at: "2026-11-29T12:00:00.000Z",
  models: [],
  failed,
});

const model = (members: Partial<Fleet["models"][number]> = {}): Fleet["models"][number] => ({
  name: "m",
  version: "1",
  digest: "d",
  kind: "tensor",
  workers: 1,
  queued: 0,
  running: 0,
  set_aside: 0,
  ...members,
});

const load = { requests: 0, bytes: 0 };
const limits = { model_requests: 100, model_sequences: 10 };
const fleet = (members: Partial<Fleet> = {}): Fleet => ({
  workers: [worker("a")],
  models: [model()],
  queue: { ...load, models: [], tenants: [], results: { count: 0, bytes: 0 }, delayed: { jobs: 0, bytes: 0 }, limits },
  ...members,
});

const texts = (members: Partial<Fleet>): string[] => noticesOf(fleet(members)).map(({ text }) => text);

describe("the fault of a fleet", () => {
  it("is nothing in a calm fleet", () => expect(texts({})).toEqual([]));

  it("is that no worker lives", () => {
    expect(texts({ workers: [], models: [] })).toEqual(["No worker is alive: requests wait until one comes."]);
  });

  it("is a model without a worker, the worse if requests wait", () => {
    expect(texts({ models: [model({ workers: 0 })] })).toEqual(["m 1 has no worker."]);
    expect(texts({ models: [model({ workers: 0, queued: 1_200 })] })).toEqual([
      "m 1 has no worker, and 1,200 requests wait for one.",
    ]);
  });

  it("is a model that several workers could not load, once", () => {
    const failed = [{ name: "b", version: "2", reason: "no file" }];
    expect(texts({ workers: [worker("a", failed), worker("b", failed)] })).toEqual([
      "2 of 2 workers could not load b 2: no file",
    ]);
  });

  it("is a full queue, requests that were set aside, and lost data, which comes first", () => {
    const { queue } = fleet();
    const lost = { times: 2, lost_calls: 1, last_at: "today", error: "e" };
    const found = texts({
      queue: { ...queue, models: [{ name: "m", requests: 80, bytes: 1 }] },
      models: [model({ set_aside: 3 })],
      gone_back: lost,
    });
    expect(found).toEqual([
      "Redis lost what it had acknowledged, 2 times, last at today: e",
      "The queue of m is nearly full: 80 requests.",
      "3 requests of m are set aside: a worker could not run them.",
    ]);
  });
});
