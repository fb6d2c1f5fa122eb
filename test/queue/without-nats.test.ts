import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Delivery } from "#shared/contract/entry.js";
import { outcomeKey } from "#shared/keys.js";
import { connectBus, type Bus } from "#shared/nats/connect.js";
import { admit } from "../../gateway/admission/admit.js";
import { PendingRequests, type Expected } from "../../gateway/replies/pending.js";
import { commit } from "../../worker/queue/commit.js";
import { readNew } from "../../worker/queue/stream.js";
import { startNats, type NatsServer } from "../setup/nats.js";
import { applicant, LIMITS, result, useLab } from "./lab.js";

const log = pino({ level: "silent" });

describe("many open requests whose gateway loses NATS", () => {
  const lab = useLab();
  let folder: string;
  let nats: NatsServer;
  let bus: Bus;
  let pending: PendingRequests;
  let stop: AbortController;
  let watching: Promise<void>;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "baton-nats-"));
    nats = await startNats(folder);
    bus = connectBus({ url: nats.url, name: "gw", log });
    await expect.poll(() => bus.isUp(), { timeout: 10_000 }).toBe(true);
    pending = new PendingRequests(lab.redis, bus, log);
    stop = new AbortController();
    watching = pending.watch(stop.signal);
  });
  afterEach(async () => {
    stop.abort();
    await watching;
    await bus.close();
    await nats.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  function expectOutcome(request: string, deadlineMs = 600_000): Expected {
    const key = outcomeKey(lab.lane, request);
    return pending.expect({ request, key, outcomeTtlMs: 60_000, deadlineMs });
  }

  /** Admitted, and all with the worker. */
  async function open(count: number) {
    const requests = Array.from({ length: count }, (_, i) => `r${i}`);
    const terms = { gateway: "gw", limits: { ...LIMITS, queue: count } };
    const deliveries: Delivery[] = [];
    for (let i = 0; i < count; i += 50) {
      const some = requests.slice(i, i + 50).map((request) => applicant(request, request));
      await admit(lab.redis, lab.lane, terms, some);
      deliveries.push(...(await readNew(lab.queue, 50, 1)).deliveries);
    }
    const expected = requests.map((request) => expectOutcome(request));
    for (const { admitted } of expected) admitted();
    return { requests, deliveries, expected };
  }

  async function killNats(): Promise<void> {
    await nats.kill();
    await expect.poll(() => bus.isUp(), { timeout: 10_000 }).toBe(false);
  }

  it.each([600, 2_000])("answers the last of %i as it asks about each of them as often", async (count) => {
    const { requests, deliveries, expected } = await open(count);
    const looks = new Map(requests.map((request) => [outcomeKey(lab.lane, request), 0]));
    const monitor = await lab.redis.duplicate({ lazyConnect: true }).monitor();
    try {
      monitor.on("monitor", (_time: string, [command, key = ""]: string[]) => {
        if (command === "hmget" && looks.has(key)) looks.set(key, (looks.get(key) ?? 0) + 1);
      });
      await killNats();
      const settlements = deliveries.slice(-100).map((delivery) => result(delivery, { action: "drop" }));
      expect(await commit(lab.queue, settlements, undefined)).toEqual(settlements.map(() => "committed"));
      const answers = await Promise.all(expected.slice(-100).map(({ outcome }) => outcome));
      expect(answers).toEqual(answers.map(() => ({ kind: "result", body: Buffer.from("answer") })));
      expect(pending.size).toBe(count - 100);

      const ofOpen = () => [...looks.values()].slice(0, -100);
      await expect.poll(() => Math.min(...ofOpen()), { timeout: 20_000 }).toBeGreaterThan(10);
      const counts = ofOpen();
      console.log(`${count} open: looks ${Math.min(...counts)} to ${Math.max(...counts)}`);
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    } finally {
      monitor.disconnect();
    }
  });

  it("ends a request at its deadline, behind 2 000 others that stay open", async () => {
    await open(2_000);
    await killNats();
    await admit(lab.redis, lab.lane, { gateway: "gw", limits: { ...LIMITS, queue: 2_001 } }, [applicant("late", "")]);
    const late = expectOutcome("late", 200);
    late.admitted();
    expect(await late.outcome).toMatchObject({ kind: "error", code: "expired" });
    expect(pending.size).toBe(2_000);
  });
});
