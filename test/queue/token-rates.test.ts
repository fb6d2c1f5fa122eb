/**
 * A generation is charged the most tokens that it may use, and gets back what it has not used,
 * however it ends.
 */
import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import type { Admission, Applicant } from "#shared/queue/admission/admit.js";
import { recount } from "#shared/queue/admission/recount.js";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import { loadKey, loadTurnKey } from "#shared/queue/keys.js";
import { shareOfRate, type ChargedRate, type Rate, type TokenCharge } from "#shared/queue/pieces/rates.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { admit, applicant, LIMITS, record, result, streaming, useLab } from "../support/queue/lab.js";

const TERMS = { gateway: "gw", limits: LIMITS };
const load = loadKey(undefined);
/** So long that nothing comes back by itself while a test runs. */
const PERIOD_US = 1_000_000_000;

describe("tokens", () => {
  const lab = useLab();
  let rate: Rate;
  beforeEach(() => {
    rate = { name: `k:${randomUUID()}:tokens`, periodUs: PERIOD_US, burst: 1_000 };
  });

  const charged = (cost: number, prompt = 0, choices = 1): ChargedRate => ({
    ...rate,
    charge: { cost, prompt, choices } satisfies TokenCharge,
  });
  const generation = (request: string, rates: readonly ChargedRate[], more: Partial<Applicant> = {}): Applicant => ({
    ...applicant(lab.lane, request, "prompt"),
    attendedMs: 60_000,
    rates,
    ...more,
  });
  const send = async (...applicants: Applicant[]): Promise<Admission[]> => admit(lab.redis, TERMS, applicants);
  /** How many tokens the owner has left, as a generation of one token sees it. */
  const left = async (): Promise<number> => {
    const [answer] = await send(generation(`look-${randomUUID()}`, [charged(1)]));
    if (answer?.said === "too-soon") return 0;
    const standing = answer?.said === "admitted" ? answer.rates?.[0] : undefined;
    return (standing?.remaining ?? Number.NaN) + 1;
  };
  const cancel = (request: string) =>
    cancelRequest(lab.redis, lab.addressOf(request), { code: "cancelled", message: "", ttlMs: 60_000, stream: true });
  const delta = (index: number) => record(index, { choices: [{ index: 0, text: "x", tokens: [7] }] });
  const end = (index: number, prompt: number, completion: number) =>
    record(index, {
      final: true,
      reason: "finished",
      usage: { prompt_tokens: prompt, completion_tokens: completion },
      choices: [{ index: 0, text: "", tokens: [7], finish_reason: "stop" }],
    });

  it("are what may be used, and the generation that wants more is refused", async () => {
    const [first, second] = await send(generation("r1", [charged(600)]), generation("r2", [charged(500)]));
    expect(first).toMatchObject({ said: "admitted", rates: [{ name: rate.name, remaining: 400 }] });
    expect(second).toMatchObject({ said: "too-soon", name: rate.name });
    // 100 tokens are missing, less those that have come back since the first.
    const waitUs = second?.said === "too-soon" ? second.waitUs : Number.NaN;
    expect(waitUs).toBe(100 * PERIOD_US);
    expect(await left()).toBe(400);
  });

  it("come back exactly when the generation ends", async () => {
    await send(generation("r1", [charged(600, 100)]));
    const delivery = await lab.takeOne();
    await lab.append(delivery.entry, "r1", [delta(0), end(1, 40, 2)], true);
    expect(await left()).toBe(400);
    await commit(streaming(lab.queue), [result(delivery, { action: "drop" })], undefined);
    expect(await left()).toBe(1_000 - 42 - 1);
  });

  it("that were used beyond the charge are taken, too", async () => {
    await send(generation("r1", [charged(10, 5)]));
    const delivery = await lab.takeOne();
    await lab.append(delivery.entry, "r1", [end(0, 200, 1)], true);
    await commit(streaming(lab.queue), [result(delivery, { action: "drop" })], undefined);
    expect(await left()).toBe(1_000 - 201);
  });

  it("that were used beyond the charge are owed, although the owner seems rested meanwhile", async () => {
    rate = { ...rate, periodUs: 1_000, burst: 1_000 };
    await send(generation("r1", [charged(1)]));
    const delivery = await lab.takeOne();
    // As after a recount, which forgets the rates of rested owners.
    await lab.redis.hdel(`${load}:rates`, rate.name);
    await lab.append(delivery.entry, "r1", [end(0, 50_000, 1)], true);
    await commit(streaming(lab.queue), [result(delivery, { action: "drop" })], undefined);
    for (let i = 0; i < 2; i++) {
      const [answer] = await send(generation(`r${i + 2}`, [charged(1)]));
      if (answer?.said !== "too-soon") expect.fail(answer?.said);
      expect(answer.waitUs).toBeGreaterThan(40_000_000);
    }
  });

  it("of the prompt are used if a worker has begun, and the client leaves before the first token", async () => {
    await send(generation("r1", [charged(600, 100)]));
    await lab.takeOne();
    await cancel("r1");
    expect(await left()).toBe(900);
  });

  it("all come back if nothing has begun, once", async () => {
    await send(generation("r1", [charged(600, 100)]));
    await cancel("r1");
    await cancel("r1");
    expect(await left()).toBe(1_000);
  });

  it("of the prompt and of each record are used if a client leaves in the middle", async () => {
    await send(generation("r1", [charged(600, 100)]), generation("r2", [charged(300, 100, 2)]));
    for (const { entry, request } of await lab.take()) await lab.append(entry, request, [delta(0), delta(1), delta(2)]);
    await cancel("r1");
    expect(await left()).toBe(1_000 - 300 - 103);
    await cancel("r2");
    expect(await left()).toBe(1_000 - 103 - 103 - 1);
  });

  it("are not charged again for a repetition under its Idempotency-Key, which counts as a request", async () => {
    const requests: Rate = { name: `k:${randomUUID()}`, periodUs: PERIOD_US, burst: 5 };
    const ask = () => send(generation("r1", [requests, charged(600)], { digest: "d" }));
    expect(await ask()).toMatchObject([
      {
        said: "admitted",
        rates: [
          { name: requests.name, remaining: 4 },
          { name: rate.name, remaining: 400 },
        ],
      },
    ]);
    await send(generation("r2", [charged(300)]));
    const again = { said: "known", rates: [{ name: requests.name, remaining: 3 }, { remaining: 100 }] };
    expect(await ask()).toMatchObject([again]);
    await cancel("r1");
    await cancel("r2");
    expect(await left()).toBe(1_000);
  });

  it("of 0 a minute are none", async () => {
    rate = { ...rate, burst: 0 };
    expect(await send(generation("r1", [charged(1)]))).toMatchObject([{ said: "too-soon" }]);
  });

  it("come back although the rate has changed meanwhile", async () => {
    await send(generation("r1", [charged(600)]));
    rate = { ...rate, periodUs: PERIOD_US / 2, burst: 2_000 };
    expect(await left()).toBe(1_400);
    await cancel("r1");
    expect(await left()).toBe(2_000 - 1);
  });

  it("count for no owner of generations, and survive a recount", async () => {
    await send(generation("r1", [charged(600)]));
    await lab.redis.unlink(loadTurnKey(load));
    await recount(lab.redis, load, 60_000, new AbortController().signal);
    expect((await lab.redis.hkeys(load)).filter((field) => field.startsWith("g:"))).toEqual([]);
    expect(await left()).toBe(400);
  });

  it("of a bucket's share may be exceeded by a single generation, which the next ones then wait for", async () => {
    rate = { ...shareOfRate({ ...rate, periodUs: 1_000 }, 0, 10), name: rate.name };
    expect(rate.burst).toBe(100);
    const big = { ...rate, charge: { cost: 900, prompt: 0, choices: 1 } };
    expect(await send(generation("r1", [big]))).toMatchObject([{ said: "admitted", rates: [{ remaining: 0 }] }]);
    const [next] = await send(generation("r2", [charged(1)]));
    expect(next?.said).toBe("too-soon");
  });
});
