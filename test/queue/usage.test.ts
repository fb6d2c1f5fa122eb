/**
 * Scripts count the usage of a key once, although calls are repeated and steps run again, and hold
 * a quota against it.
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { beforeEach, describe, expect, it } from "vitest";
import { encodeCheckpoint } from "#shared/contract/checkpoint.js";
import { NO_KEY } from "#shared/contract/usage.js";
import { storeOutcome } from "#shared/contract/outcome.js";
import type { Admission, Applicant } from "#shared/queue/admission/admit.js";
import { admit as admitInCall } from "#shared/queue/admission/admit.js";
import { readTaken } from "#shared/queue/admission/read-taken.js";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import type { Delivery } from "#shared/queue/entry.js";
import { loadKey, spentKey, usageKey } from "#shared/queue/keys.js";
import { readUsage, readUsers, type UsageSums } from "#shared/queue/owners/usage.js";
import { loadFieldOf, type Quota, type QuotaField } from "#shared/queue/pieces/usage.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import type { Settlement } from "#shared/queue/work/commit/settlement.js";
import { spent, usage } from "#shared/records/usage.js";
import { admit, applicant, LIMITS, onlyCall, record, result, streaming, useLab } from "../support/queue/lab.js";

const TERMS = { gateway: "gw", limits: { ...LIMITS, keptMs: 120_000 } };
const load = loadKey(undefined);
const today = (): string => new Date().toISOString().slice(0, 10);

describe("usage", () => {
  const lab = useLab();
  let key: string;
  let tenant: string;
  beforeEach(() => {
    [key, tenant] = [randomUUID().slice(-12), `t-${randomUUID().slice(0, 8)}`];
  });

  const of = (request: string, more: Partial<Applicant> = {}): Applicant => ({
    ...applicant(lab.lane, request, "12345"),
    tenant,
    usage: { key, counts: 1 },
    ...more,
  });
  const step = (request: string, id: string, start: boolean): Applicant =>
    of(request, { attendedMs: undefined, sequence: { name: `${tenant}:${id}`, start, end: false } });
  const generation = (request: string, prompt: number, choices = 1): Applicant =>
    of(request, { attendedMs: 60_000, usage: { key, counts: 1, generation: { prompt, choices } } });
  const send = async (...applicants: Applicant[]): Promise<Admission["said"][]> =>
    (await admit(lab.redis, TERMS, applicants)).map(({ said }) => said);
  const tookOf = (computeUs: number, bytesOut: number) => spent.write({ key, computeUs, bytesOut });
  const committed = (delivery: Delivery, spent?: string): Settlement => ({
    ...result(delivery, { action: "drop" }),
    spent,
  });
  const continued = (delivery: Delivery, spent: string): Settlement => {
    const version = randomUUID();
    const outcome = storeOutcome({ kind: "result", body: Buffer.from("answer") });
    const { frame: checkpoint } = encodeCheckpoint(version, []);
    return { delivery, outcome, state: { action: "put", version, checkpoint }, deadReason: undefined, spent };
  };
  const used = async (of = key): Promise<Partial<UsageSums> | undefined> => {
    const pairs = await readUsage(lab.redis, 1, tenant, today());
    const { sums } = pairs.find((pair) => pair.key === of && pair.model === lab.lane.model) ?? {};
    return sums && Object.fromEntries(Object.entries(sums).filter(([, value]) => value !== 0));
  };
  const delta = (index: number, choices = [0]) =>
    record(index, { choices: choices.map((index) => ({ index, text: "x", tokens: [7] })) });
  const end = (index: number, prompt: number, completion: number) =>
    record(index, {
      final: true,
      reason: "finished",
      usage: { prompt_tokens: prompt, completion_tokens: completion },
      choices: [{ index: 0, text: "", tokens: [7], finish_reason: "stop" }],
    });
  const appended = (entry: string, request: string, records: readonly string[], final = false) =>
    lab.appendOf(tenant, entry, request, records, final);

  it("counts requests and their bytes, once for each copy of a call", async () => {
    const call = onlyCall();
    const asked = [of("r1"), of("r2"), of("part", { usage: { key, counts: 0 } })];
    for (let copy = 0; copy < 3; copy++) await admitInCall(lab.redis, TERMS, asked, call);
    expect(await used()).toEqual({ requests: 2, bytesIn: 15 });
    expect(await readUsers(lab.redis, 1, today().slice(0, 7))).toContain(tenant);
  });

  it("counts a repeat under an Idempotency-Key as a request, and nothing else", async () => {
    expect(await send(of("r1", { digest: "d" }))).toEqual(["admitted"]);
    expect(await send(of("r1", { digest: "d" }))).toEqual(["known"]);
    expect(await used()).toEqual({ requests: 2, bytesIn: 5 });
  });

  it("counts what a limit refuses", async () => {
    const rate = { name: `k:${key}`, periodUs: 1e9, burst: 1 };
    expect(await send(of("r1", { rates: [rate] }), of("r2", { rates: [rate] }))).toEqual(["admitted", "too-soon"]);
    expect(await used()).toEqual({ requests: 1, bytesIn: 5, refused: 1 });
  });

  it.each([true, false])("counts a step when it takes effect, and once (short scripts: %j)", async (shortScripts) => {
    await send(step("a1", "a", true), step("b1", "b", true));
    const queue = { ...lab.queue, shortScripts };
    for (let copy = 0; copy < 2; copy++) {
      const deliveries = await lab.take();
      if (deliveries.length === 0) break;
      const settlements = deliveries.map((delivery) => continued(delivery, tookOf(1_500, 100)));
      await commit(queue, settlements, 60_000);
      expect(await commit(queue, settlements, 60_000)).toEqual(["already", "already"]);
    }
    expect(await used()).toEqual({ requests: 2, bytesIn: 10, steps: 2, computeUs: 3_000, bytesOut: 200 });
  });

  it("counts what a stateless request took, which is no step", async () => {
    await send(of("r1", { attendedMs: undefined }));
    await commit(lab.queue, [committed(await lab.takeOne(), tookOf(700, 6))], undefined);
    expect(await used()).toEqual({ requests: 1, bytesIn: 5, computeUs: 700, bytesOut: 6 });
  });

  it("counts nothing of requests without a key", async () => {
    await send(of("r1", { usage: undefined, attendedMs: undefined }));
    await commit(lab.queue, [committed(await lab.takeOne())], undefined);
    expect(await readUsage(lab.redis, 1, tenant, today())).toEqual([]);
  });

  it("counts the tokens of a generation as its last record has them", async () => {
    await send(generation("r1", 3));
    const delivery = await lab.takeOne();
    await appended(delivery.entry, "r1", [delta(0), end(1, 40, 2)], true);
    const settlement = committed(delivery, tookOf(90, 12));
    await commit(streaming(lab.queue), [settlement], undefined);
    await commit(streaming(lab.queue), [settlement], undefined);
    expect(await used()).toEqual({ requests: 1, bytesIn: 5, tokensIn: 40, tokensOut: 2, computeUs: 90, bytesOut: 12 });
  });

  it("counts the tokens that a cancelled generation has in its log, and the worker's time", async () => {
    await send(generation("r1", 3, 2));
    const delivery = await lab.takeOne();
    await appended(delivery.entry, "r1", [delta(0, [0, 1]), delta(1, [1]), delta(2, [1])]);
    const ending = { code: "cancelled", message: "", ttlMs: 60_000, stream: true } as const;
    for (let copy = 0; copy < 2; copy++) await cancelRequest(lab.redis, { ...lab.addressOf("r1"), tenant }, ending);
    expect(await used()).toEqual({ requests: 1, bytesIn: 5, tokensIn: 3, tokensOut: 4 });
    await commit(streaming(lab.queue), [committed(delivery, tookOf(90, 12))], undefined);
    expect(await used()).toMatchObject({ tokensOut: 4, computeUs: 90, bytesOut: 12 });
  });

  it("puts the rest of a day with very many keys and models together", async () => {
    const none = {
      requests: 1,
      steps: 0,
      tokensIn: 0,
      tokensOut: 0,
      computeUs: 0,
      bytesIn: 0,
      bytesOut: 0,
      refused: 0,
    };
    const many = Array.from({ length: 999 }, (_, i) => [`k${i}|m`, usage.write(none)]).flat();
    await lab.redis.hset(usageKey(load, tenant, today()), ...many);
    await send(
      of("r1"),
      of("r2", { usage: { key: "late", counts: 1 } }),
      of("r3", { usage: { key: "later", counts: 1 } }),
    );
    await send(of("r4", { usage: { key: "late", counts: 1 } }), of("r5"));
    const pairs = await readUsage(lab.redis, 1, tenant, today());
    expect(pairs.length).toBeLessThanOrEqual(1_001);
    const sum = pairs.reduce((all, { sums }) => all + sums.requests, 0);
    expect(sum).toBe(999 + 5);
    expect(pairs.find(({ key }) => key === "other")?.sums.requests).toBe(3);
  });

  it("stays as long as the admitting gateway says, whoever writes first", async () => {
    const DAY = 86_400_000;
    const days = async (hash: string) => Math.round((await lab.redis.pttl(hash)) / DAY);
    const [hash, spentOf] = [usageKey(load, tenant, today()), spentKey(load, today().slice(0, 7))];
    await send(of("r1", { attendedMs: undefined }));
    await lab.redis.del(hash, spentOf);
    await commit(lab.queue, [committed(await lab.takeOne(), tookOf(1, 1))], undefined);
    expect([await days(hash), await days(spentOf)]).toEqual([90, 121]);
    await admit(lab.redis, { ...TERMS, usageDays: 400 }, [of("r2")]);
    expect([await days(hash), await days(spentOf)]).toEqual([400, 431]);
  });

  it("has no sums of a token's subject, but for the day", async () => {
    const subject = `jwt:${key}`;
    await send(of("r1", { usage: { key: subject, counts: 1 } }));
    expect(await used(subject)).toEqual({ requests: 1, bytesIn: 5 });
    const owners = await lab.redis.hkeys(spentKey(load, today().slice(0, 7)));
    expect([owners.includes(`k:${subject}`), owners.includes(`t:${tenant}`)]).toEqual([false, true]);
  });

  it("costs a request nothing if a person has put something else there", async () => {
    await lab.redis.set(usageKey(load, tenant, today()), "mine");
    expect(await send(of("r1"))).toEqual(["admitted"]);
  });

  it("knows every day of the calendar", async () => {
    const piece = readFileSync(new URL("../../shared/queue/pieces/usage.lua", import.meta.url), "utf8");
    const dateOf = /^local function dateOf\(.*?^end$/ms.exec(piece)?.[0] ?? expect.fail("no dateOf");
    const days = Array.from({ length: 60_000 }, (_, day) => day);
    const script = `local DAY_MS = 86400000 ${dateOf}
      local said = {}
      for day = 0, 59999 do said[day + 1] = dateOf(day * DAY_MS * 1000 + 86399999999) end
      return said`;
    const expected = days.map((day) => new Date(day * 86_400_000).toISOString().slice(0, 10));
    expect(await lab.redis.eval(script, 0)).toEqual(expected);
  });

  describe("a quota", () => {
    const quota = (field: QuotaField, most: number): Quota => ({ name: `k:${key}`, field, most });

    it.each(["requests", "dayRequests"] as const)("of %s admits exactly so many", async (field) => {
      const asked = Array.from({ length: 5 }, (_, i) => of(`r${i}`, { quotas: [quota(field, 3)] }));
      expect(await admit(lab.redis, TERMS, asked)).toMatchObject([
        ...[0, 1, 2].map(() => ({ said: "admitted" })),
        ...[3, 4].map(() => ({ said: "over-quota", name: `k:${key}`, field })),
      ]);
      expect(await send(of("r9", { quotas: [quota(field, 3)] }))).toEqual(["over-quota"]);
      expect(await send(of("r10", { quotas: [quota(field, 4)] }))).toEqual(["admitted"]);
      expect(await used()).toMatchObject({ requests: 4, refused: 3 });
    });

    it("of requests lets the further parts of a request pass, which count as none", async () => {
      const quotas = [quota("requests", 1)];
      const part = of("part", { quotas, usage: { key, counts: 0 } });
      expect(await send(of("r1", { quotas }), part)).toEqual(["admitted", "admitted"]);
      expect(await send(of("r2", { quotas }))).toEqual(["over-quota"]);
    });

    it("stops usual steps, too", async () => {
      const quotas = [quota("requests", 2)];
      expect(await send({ ...step("a1", "a", true), quotas })).toEqual(["admitted"]);
      await commit(lab.queue, [continued(await lab.takeOne(), tookOf(1, 1))], 60_000);
      expect(await send({ ...step("a2", "a", false), quotas })).toEqual(["admitted"]);
      await commit(lab.queue, [continued(await lab.takeOne(), tookOf(1, 1))], 60_000);
      expect(await send({ ...step("a3", "a", false), quotas })).toEqual(["over-quota"]);
    });

    it("lets a repeat of an admitted request have its answer", async () => {
      const asked = of("r1", { digest: "d", quotas: [quota("requests", 1)] });
      expect(await send(asked)).toEqual(["admitted"]);
      expect(await send(asked)).toEqual(["known"]);
      expect(await send(of("r2", { digest: "e", quotas: [quota("requests", 1)] }))).toEqual(["over-quota"]);
    });

    it("of tokens or of time is used up by what has been used", async () => {
      await send(generation("r1", 3));
      const delivery = await lab.takeOne();
      await appended(delivery.entry, "r1", [end(0, 40, 2)], true);
      await commit(streaming(lab.queue), [committed(delivery, tookOf(5_000, 1))], undefined);
      const asks = async (field: QuotaField, most: number) =>
        (await send(of(randomUUID(), { quotas: [quota(field, most)] })))[0];
      for (const field of ["tokens", "dayTokens"] as const) {
        expect([await asks(field, 42), await asks(field, 43)]).toEqual(["over-quota", "admitted"]);
      }
      for (const field of ["computeUs", "dayComputeUs"] as const) {
        expect([await asks(field, 5_000), await asks(field, 5_001)]).toEqual(["over-quota", "admitted"]);
      }
    });

    it("of the day before, or of the month before, counts no longer", async () => {
      const values = { dayRequests: 9, dayTokens: 9, dayComputeUs: 9, requests: 9, tokens: 9, computeUs: 9 };
      const past = ["2001-02-03", ...Object.values(values)].join(" ");
      await lab.redis.hset(spentKey(load, today().slice(0, 7)), `k:${key}`, past);
      const fields = (["dayRequests", "requests"] as const).map((field) => loadFieldOf(quota(field, 0)));
      expect((await readTaken(lab.redis, undefined, fields)).map(({ requests }) => requests)).toEqual([0, 9]);
      expect(await send(of("r1", { quotas: [quota("dayRequests", 1)] }))).toEqual(["admitted"]);
      expect(await send(of("r2", { quotas: [quota("dayRequests", 1)] }))).toEqual(["over-quota"]);
      expect((await readTaken(lab.redis, undefined, fields)).map(({ requests }) => requests)).toEqual([1, 10]);
    });

    it("of the tenant counts work that no client sends", async () => {
      const quotas = [{ name: `t:${tenant}`, field: "requests", most: 1 }] as const;
      const work = (request: string) => of(request, { usage: { key: NO_KEY, counts: 1 }, quotas });
      expect(await send(work("r1"), work("r2"))).toEqual(["admitted", "over-quota"]);
      expect(await used(NO_KEY)).toMatchObject({ requests: 1, refused: 1 });
    });
  });
});
