import { describe, expect, it } from "vitest";
import { PendingRequests } from "../../gateway/outcomes/pending.js";
import { addressOf, secret, useLab } from "../support/queue/lab.js";
import { silentBus, silentLog } from "../support/silent.js";
import { until } from "../support/until.js";

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
