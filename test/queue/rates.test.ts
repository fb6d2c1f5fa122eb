/** How often an owner is admitted: exact to the request, and a refusal costs nothing. */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { admit as admitCall, type Admission, type Applicant } from "#shared/queue/admission/admit.js";
import { shareOfRate, type Rate } from "#shared/queue/pieces/rates.js";
import { readUsed } from "#shared/queue/admission/read-used.js";
import { recount } from "#shared/queue/admission/recount.js";
import { recordLater } from "#shared/queue/jobs/record-later.js";
import { writeBatch } from "#shared/queue/batches/write-batch.js";
import { batchKeys, loadKey } from "#shared/queue/keys.js";
import { admit, applicant, LIMITS, onlyCall, useLab } from "../support/queue/lab.js";

const TERMS = { gateway: "gw", limits: LIMITS };
const SECOND = 1_000_000;

describe("the rate of an owner", () => {
  const lab = useLab();
  const named = (periodUs: number, burst: number): Rate => ({ name: `k:${randomUUID()}`, periodUs, burst });
  const asking = (rates: readonly Rate[] | undefined, more: Partial<Applicant> = {}): Applicant => ({
    ...applicant(lab.lane, randomUUID(), "body"),
    rates,
    ...more,
  });
  const send = (count: number, ...rates: Rate[]): Promise<Admission[]> =>
    admit(
      lab.redis,
      TERMS,
      Array.from({ length: count }, () => asking(rates)),
    );
  const one = async (...rates: Rate[]): Promise<Admission> => (await send(1, ...rates))[0] ?? expect.fail("no answer");
  const words = (answers: readonly Admission[]): string[] => answers.map(({ said }) => said);
  const times = (word: string, count: number): string[] => Array.from({ length: count }, () => word);
  const nowUs = async (): Promise<number> => {
    const [seconds, micros] = await lab.redis.time();
    return Number(seconds) * SECOND + Number(micros);
  };

  it("lets a rested owner send its burst at once, and no request more", async () => {
    const rate = named(1_000 * SECOND, 20);
    const first = await send(7, rate);
    expect(first.map((one) => one.said === "admitted" && one.rates?.[0]?.remaining)).toEqual([
      19, 18, 17, 16, 15, 14, 13,
    ]);
    expect(words(await send(30, rate))).toEqual([...times("admitted", 13), ...times("too-soon", 17)]);
    const refused = await one(rate);
    if (refused.said !== "too-soon") expect.fail(refused.said);
    expect([refused.name, refused.waitUs <= 1_000 * SECOND, refused.waitUs > 900 * SECOND]).toEqual([
      rate.name,
      true,
      true,
    ]);
  });

  it("lets the owner send again after the time that a refusal names, and not before", async () => {
    const rate = named(SECOND / 5, 2);
    const since = await nowUs();
    await send(2, rate);
    const until = await nowUs();
    // The owner has room for one again when the first of the two periods is over.
    for (;;) {
      const before = await nowUs();
      const answer = await one(rate);
      const after = await nowUs();
      if (answer.said === "admitted") {
        expect(after).toBeGreaterThanOrEqual(since + rate.periodUs);
        return;
      }
      if (answer.said !== "too-soon") expect.fail(answer.said);
      expect(before).toBeLessThan(until + rate.periodUs);
      expect(before + answer.waitUs).toBeLessThanOrEqual(until + rate.periodUs);
      expect(after + answer.waitUs).toBeGreaterThanOrEqual(since + rate.periodUs);
    }
  });

  it("counts by itself beside another, and the one in the way refuses", async () => {
    const [first, second, tenant] = [named(1_000 * SECOND, 2), named(1_000 * SECOND, 2), named(1_000 * SECOND, 3)];
    expect(words(await send(3, first, tenant))).toEqual(["admitted", "admitted", "too-soon"]);
    const answers = await send(2, second, tenant);
    expect(answers).toMatchObject([
      { said: "admitted", rates: [{ name: tenant.name, remaining: 0 }] },
      { said: "too-soon", name: tenant.name },
    ]);
    // The refused requests have cost the second key nothing.
    expect(await one(second)).toMatchObject({ said: "admitted", rates: [{ name: second.name, remaining: 0 }] });
  });

  it("leaves nothing of a refused request: no sequence, no record, no count", async () => {
    const rate = named(1_000 * SECOND, 1);
    await one(rate);
    await lab.take();
    const before = await contents();
    const sequence = { name: "default:u9", start: true, end: false };
    expect(words(await admit(lab.redis, TERMS, [asking([rate], { sequence, digest: "d" })]))).toEqual(["too-soon"]);
    expect(await contents()).toEqual(before);
    async function contents(): Promise<unknown> {
      const keys = (await lab.redis.keys("*")).filter((key) => !key.startsWith("calls:")).sort();
      return Promise.all(keys.map(async (key) => [key, (await lab.redis.dumpBuffer(key))?.toString("base64")]));
    }
  });

  it("counts a copy of a call once, and a repetition under its key again", async () => {
    const rate = named(1_000 * SECOND, 3);
    const call = onlyCall();
    const asked = asking([rate], { digest: "d" });
    const answers = [];
    for (let i = 0; i < 2; i++) answers.push(await admitCall(lab.redis, TERMS, [asked], call));
    expect(answers).toMatchObject(
      times("", 2).map(() => ({ admissions: [{ said: "admitted", rates: [{ remaining: 2 }] }] })),
    );
    expect(await admit(lab.redis, TERMS, [asked])).toMatchObject([{ said: "known", rates: [{ remaining: 1 }] }]);
    expect(await one(rate)).toMatchObject({ rates: [{ remaining: 0 }] });
    expect(words(await admit(lab.redis, TERMS, [asked]))).toEqual(["too-soon"]);
  });

  it("counts what was taken at the new rate if the rate changes", async () => {
    const slow = named(1_000 * SECOND, 1);
    await one(slow);
    const fast = { ...slow, periodUs: SECOND };
    expect(await one(fast)).toMatchObject({ said: "too-soon" });
    const refused = await one(fast);
    expect(refused.said === "too-soon" && refused.waitUs <= SECOND).toBe(true);
    expect(await one({ ...fast, burst: 2 })).toMatchObject({ said: "admitted", rates: [{ remaining: 0 }] });
  });

  it("owes no more than its burst, should the clock of a server be behind", async () => {
    const rate = named(SECOND, 3);
    await lab.redis.hset(`${loadKey(undefined)}:rates`, rate.name, `${(await nowUs()) + 3_600 * SECOND} ${SECOND}`);
    const refused = await one(rate);
    expect(refused.said === "too-soon" && refused.waitUs <= SECOND).toBe(true);
  });

  it("costs requests of owners without rates nothing", async () => {
    const rate = named(1_000 * SECOND, 1);
    const answers = await admit(lab.redis, TERMS, [asking([rate]), asking(undefined), asking([rate]), asking([])]);
    expect(words(answers)).toEqual(["admitted", "admitted", "too-soon", "admitted"]);
  });

  it("counts a job that waits for its time, and its repetition", async () => {
    const rate = named(1_000 * SECOND, 2);
    const record = { type: "infer", options: "{}", shown: "{}", body: Buffer.from("{}"), wait: "1000" } as const;
    const later = async (request: string, digest = "d", isRepeated = false) =>
      recordLater(
        lab.redis,
        { job: lab.addressOf(request), due: { inMs: 60_000 }, digest, ttlMs: 60_000, record, rates: [rate] },
        { jobs: undefined, bytes: undefined },
        isRepeated,
      );
    expect(await later("r1")).toMatchObject({ said: "recorded", rates: [{ name: rate.name, remaining: 1 }] });
    expect(await later("r1", "another")).toEqual({ said: "mismatch" });
    expect(await later("r1")).toMatchObject({ said: "known", rates: [{ remaining: 0 }] });
    expect(await later("r1", "d", true)).toEqual({ said: "known", rates: undefined });
    expect(await later("r2")).toMatchObject({ said: "too-soon", name: rate.name });
    expect(await one(rate)).toMatchObject({ said: "too-soon" });
  });

  it("tells how it stands, at a changed period, too, and a look takes nothing", async () => {
    const [rate, rested] = [named(1_000 * SECOND, 5), named(1_000 * SECOND, 2)];
    await send(2, rate);
    const look = async (...rates: Rate[]) => {
      const { standings, loads } = await readUsed(lab.redis, 1, { rates, fields: ["t:nobody", "t:default"] });
      expect(loads).toMatchObject([{ field: "t:nobody", requests: 0 }, { field: "t:default" }]);
      return standings;
    };
    expect(await look(rested, rate)).toEqual([
      { name: rested.name, remaining: 2, resetUs: 0 },
      { name: rate.name, remaining: 3, resetUs: expect.closeTo(2_000 * SECOND, -8) as number },
    ]);
    const halved = { ...rate, periodUs: 500 * SECOND };
    expect(await look(halved)).toMatchObject([{ remaining: 3, resetUs: expect.closeTo(1_000 * SECOND, -8) as number }]);
    expect(await look({ ...rate, burst: 0 })).toMatchObject([{ remaining: 0, resetUs: 0 }]);
    expect(await one(rate)).toMatchObject({ said: "admitted", rates: [{ remaining: 2 }] });
  });

  it("counts a batch when its client makes it, and its repetition, and no change of it", async () => {
    const rate = named(1_000 * SECOND, 2);
    const batch = (id: string, digest: string, run = 0): string => JSON.stringify({ id, digest, run });
    const keeping = { keptMs: 60_000, open: 200, known: 200 };
    const make = (id: string, to: string, isRepeated = false, limits = keeping) =>
      writeBatch(
        lab.redis,
        { tenant: rate.name, id, from: undefined, to, open: "in_progress", rates: [rate] },
        limits,
        isRepeated,
      );
    const full = { ...keeping, open: 0 };
    expect(await make("b1", batch("b1", "d"), false, full)).toEqual({ said: "full" });
    expect(await make("b1", batch("b1", "d"))).toMatchObject({
      said: "written",
      rates: [{ name: rate.name, remaining: 1 }],
    });
    expect(await make("b1", batch("b1", "d"), true)).toEqual({ said: "written", rates: undefined });
    expect(await make("b1", batch("b1", "d", 1), true)).toEqual({ said: "conflict", rates: undefined });
    expect(await make("b1", batch("b1", "another"))).toEqual({ said: "conflict", rates: undefined });
    expect(await make("b1", batch("b1", "d", 1))).toMatchObject({ said: "conflict", rates: [{ remaining: 0 }] });
    expect(await make("b2", batch("b2", "d"))).toMatchObject({ said: "too-soon", name: rate.name });
    expect(await lab.redis.exists(batchKeys.batch(rate.name, "b2"))).toBe(0);
    expect(await one(rate)).toMatchObject({ said: "too-soon" });
    const change = {
      tenant: rate.name,
      id: "b1",
      from: batch("b1", "d"),
      to: batch("b1", "d", 2),
      open: "in_progress",
    };
    expect(await writeBatch(lab.redis, change, keeping)).toEqual({ said: "written", rates: undefined });
  });

  it("is forgotten once its owner is rested", async () => {
    const [soon, late] = [named(1_000, 1), named(1_000 * SECOND, 1)];
    await send(1, soon, late);
    const load = loadKey(undefined);
    const known = async (): Promise<string[]> => {
      await recount(lab.redis, load, 1, new AbortController().signal);
      return (await lab.redis.hkeys(`${load}:rates`)).filter((name) => name === soon.name || name === late.name);
    };
    await expect.poll(known).toEqual([late.name]);
  });
});

describe("the shares of a Cluster's buckets", () => {
  it.each([
    [20, 16],
    [5, 16],
    [100, 3],
    [1, 1],
    [0, 16],
  ])("of a burst of %i over %i buckets are the whole, and at least one each", (burst, buckets) => {
    const shares = Array.from({ length: buckets }, (_, i) =>
      shareOfRate({ name: "k:a", periodUs: 10, burst }, i, buckets),
    );
    const sum = shares.reduce((total, share) => total + share.burst, 0);
    expect(sum).toBe(burst === 0 ? 0 : Math.max(burst, buckets));
    expect(new Set(shares.map(({ periodUs }) => periodUs))).toEqual(new Set([burst === 0 ? 10 : 10 * buckets]));
  });
});
