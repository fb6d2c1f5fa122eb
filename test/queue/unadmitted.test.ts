import { describe, expect, it } from "vitest";
import type { InferenceRequest } from "../../gateway/admission/inference.js";
import { QueuedInference } from "../../gateway/admission/submit.js";
import { PendingRequests } from "../../gateway/outcomes/pending.js";
import { addressOf, secret, useLab } from "../support/queue/lab.js";
import { silentBus, silentLog } from "../support/silent.js";
import { until } from "../support/until.js";

it("a client that has left before its request was admitted costs the queue nothing", async () => {
  // Without settings, every attempt to admit would fail.
  const inference = new QueuedInference({} as ConstructorParameters<typeof QueuedInference>[0]);
  const request = { client: { hasLeft: true }, sequence: undefined, idempotencyKey: undefined };
  expect(await inference.infer(request as InferenceRequest)).toMatchObject({ kind: "error", code: "cancelled" });
});

describe("a request whose deadline passes while its admission is under way", () => {
  const lab = useLab();

  it("is not called expired before it is known whether it was admitted, and has no effect then", async () => {
    const { redis } = lab;
    const pending = new PendingRequests({ redis, bus: silentBus, gateway: "gw", secret, log: silentLog });
    const stop = new AbortController();
    const watching = pending.watch(stop.signal);
    const expected = pending.expect({ address: addressOf(lab, "r1"), outcomeTtlMs: 60_000, deadlineMs: 1 });
    let isTold = false;
    void expected.outcome.then(() => (isTold = true));
    // The gateway has asked again after Redis answered that it knows no such request.
    const scripts = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info("commandstats"))?.[1] ?? 0);
    const before = await scripts();
    await until(async () => isTold || (await scripts()) >= before + 10);
    expect(isTold).toBe(false);
    await lab.admitRequest("r1");
    expected.admitted(false);
    expect(JSON.stringify(await expected.outcome)).toContain("expired");
    expect((await lab.outcomeFields("r1"))["kind"]).toBe("error");
    stop.abort();
    await watching;
  });
});
