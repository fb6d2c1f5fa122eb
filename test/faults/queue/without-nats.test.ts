import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeKey } from "#shared/queue/keys.js";
import { delay } from "#shared/retry.js";
import { startNats, type NatsServer } from "../../support/brokers/nats.js";
import { admit, applicant, useLab, LIMITS } from "../../support/queue/lab.js";
import { answersTo, AnsweringWorker, GATEWAY, outcomesOf, WaitingGateway } from "../../support/queue/replies.js";

describe("many open requests whose gateway loses NATS", () => {
  const lab = useLab();
  let nats: NatsServer;
  let gateway: WaitingGateway;
  let worker: AnsweringWorker;
  beforeEach(async () => {
    nats = await startNats();
    gateway = await WaitingGateway.start(lab, nats.url);
    worker = await AnsweringWorker.start(lab, nats.url);
  });
  afterEach(async () => {
    await worker.close();
    await gateway.close();
    await nats.dispose();
  });

  async function killNats(): Promise<void> {
    await nats.kill();
    await expect.poll(() => gateway.bus.isUp() || worker.bus.isUp()).toBe(false);
  }

  it.each([600, 2_000, 10_000])(
    "answers the last of %i as it asks about each of them as often",
    { timeout: 120_000 },
    async (count) => {
      const open = await gateway.open(count);
      const looks = new Map(open.map(({ delivery }) => [outcomeKey(lab.addressOf(delivery.request)), 0]));
      const monitor = await new Redis(lab.url, { lazyConnect: true }).monitor();
      try {
        monitor.on("monitor", (_time: string, [command, key = ""]: string[]) => {
          if (command === "HMGET" && looks.has(key)) looks.set(key, (looks.get(key) ?? 0) + 1);
        });
        await killNats();
        const last = open.slice(-100);
        await worker.settle(last);
        expect(await outcomesOf(last)).toEqual(answersTo(last));
        expect(gateway.pending.size).toBe(count - 100);

        // By then even the youngest request is so old that the gateway looks at all of them equally
        // often.
        await delay(1_000);
        for (const key of looks.keys()) looks.set(key, 0);
        const ofOpen = () => [...looks.values()].slice(0, -100);
        await expect.poll(() => Math.min(...ofOpen()), { timeout: 60_000 }).toBeGreaterThan(10);
        const counts = ofOpen();
        console.log(`${count} open: looks ${Math.min(...counts)} to ${Math.max(...counts)}`);
        // A round may be under way at either end of the count.
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(2);
      } finally {
        monitor.disconnect();
      }
    },
  );

  it.each(["worker can leave word", "worker, too, believes in NATS"])(
    "sees each of 2 000 outcomes, whether its %s",
    async (how) => {
      const open = await gateway.open(2_000);
      await killNats();
      if (how.includes("believes")) worker.believesInNats = true;
      for (let i = 0; i < open.length; i += 100) await worker.settle(open.slice(i, i + 100));
      expect(await outcomesOf(open)).toEqual(answersTo(open));
      expect(gateway.pending.size).toBe(0);
    },
  );

  it("ends a request at its deadline, behind 2 000 others that stay open", async () => {
    await gateway.open(2_000);
    await killNats();
    await admit(lab.redis, { gateway: GATEWAY, limits: { ...LIMITS, queue: 2_001 } }, [
      applicant(lab.lane, "late", ""),
    ]);
    const late = gateway.expect("late", 200);
    late.admitted(false);
    expect(await late.outcome).toMatchObject({ kind: "error", code: "expired" });
    expect(gateway.pending.size).toBe(2_000);
  });
});
