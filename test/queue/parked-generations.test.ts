/**
 * Parked generations go in shares by weight in tokens: a generation costs what the last generations
 * of its tenant had.
 */
import { describe, expect, it } from "vitest";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import type { Delivery } from "#shared/queue/entry.js";
import { laneKeys } from "#shared/queue/keys.js";
import { usualTerms } from "#shared/queue/pieces/parking.js";
import type { Applicant } from "#shared/queue/admission/admit.js";
import { withdraw } from "#shared/queue/admission/withdraw.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { appendTokens } from "#shared/queue/work/streams/append-tokens.js";
import { admit, applicant, IDLE_MS, LIMITS, put, record, result, streaming, useLab } from "../support/queue/lab.js";

const WINDOW = 4;
const PROMPT = 10;

describe("parked generations", () => {
  const lab = useLab();

  function asks(tenant: string, request: string, weight: number): Applicant {
    return {
      ...applicant(lab.lane, request, "prompt"),
      tenant,
      attendedMs: 60_000,
      window: WINDOW,
      waiting: { ...usualTerms, weight },
    };
  }
  const admitAll = (applicants: readonly Applicant[]) =>
    admit(lab.redis, { gateway: "gw", limits: { ...LIMITS, queue: 10_000 } }, applicants);
  const backlog = (tenant: string, count: number, weight: number, more: Partial<Applicant> = {}) =>
    admitAll(Array.from({ length: count }, (_, i) => ({ ...asks(tenant, `${i}`, weight), ...more })));
  /** Runs this generation to its end. */
  async function run(delivery: Delivery, tokens: number): Promise<void> {
    const { lane, entry, tenant, request } = delivery;
    const usage = { prompt_tokens: PROMPT, completion_tokens: tokens - PROMPT };
    const records = [record(0, { final: true, reason: "finished", usage })];
    await appendTokens(streaming(lab.queue), [{ lane, entry, tenant, request, first: 0, records, final: true }]);
    const settled = result(delivery, delivery.sequence === undefined ? { action: "drop" } : put("after"));
    expect(await commit(streaming(lab.queue), [settled], IDLE_MS)).toEqual(["committed"]);
  }
  /**
   * Runs generations of these lengths, one after the other, until a tenant has this many tokens.
   * @returns the tokens of each tenant
   */
  async function share(lengths: Readonly<Record<string, number>>, until: readonly [tenant: string, tokens: number]) {
    const tokens: Record<string, number> = {};
    for (;;) {
      for (const delivery of await lab.take()) {
        const length = lengths[delivery.tenant] ?? PROMPT;
        await run(delivery, length);
        tokens[delivery.tenant] = (tokens[delivery.tenant] ?? 0) + length;
        if ((tokens[until[0]] ?? 0) >= until[1]) return tokens;
      }
    }
  }

  it.each([
    ["as long as another's", 100, 100, 1],
    ["ten times as long as another's", 400, 40, 1],
    ["a tenth as long as another's", 40, 400, 1],
    ["jobs ten times as long as another's", 400, 40, 9],
  ])("of a tenant of weight 1, which are %s, get a third of the tokens", async (_, light, heavy, level) => {
    await backlog("first", WINDOW, 1);
    await backlog("light", 300, 1, { waiting: { ...usualTerms, level, weight: 1 } });
    await backlog("heavy", 300, 3, { waiting: { ...usualTerms, level, weight: 3 } });
    const tokens = await share({ light, heavy }, ["heavy", 12_000]);
    expect(Math.abs((tokens["light"] ?? 0) / 4_000 - 1)).toBeLessThan(0.11);
  });

  it("count in tokens, too, when they are turns of conversations", async () => {
    const turns = (tenant: string) =>
      Array.from({ length: 200 }, (_, i) => ({
        ...asks(tenant, `${i}`, 1),
        sequence: { name: `${tenant}:c${i}`, start: true, end: false },
      }));
    await backlog("first", WINDOW, 1);
    await admitAll(turns("long"));
    await admitAll(turns("short"));
    const tokens = await share({ long: 400, short: 40 }, ["short", 4_000]);
    expect(Math.abs((tokens["long"] ?? 0) / 4_000 - 1)).toBeLessThan(0.11);
  });

  it("cost no more than they have run, if they are cancelled", async () => {
    await backlog("steady", 600, 1);
    await backlog("fickle", 600, 1);
    const ran: Record<string, number> = { steady: 0, fickle: 0 };
    const give = { code: "cancelled", message: "", ttlMs: 60_000, stream: true } as const;
    for (let i = 0; (ran["steady"] ?? 0) < 8_000; i++) {
      for (const delivery of await lab.take()) {
        const { tenant, entry, lane, request } = delivery;
        const isCut = tenant === "fickle" && i % 2 === 0;
        ran[tenant] = (ran[tenant] ?? 0) + (isCut ? 3 : 100);
        if (!isCut) {
          await run(delivery, 100);
          continue;
        }
        const records = [0, 1, 2].map((index) => record(index));
        await appendTokens(streaming(lab.queue), [{ lane, entry, tenant, request, first: 0, records, final: false }]);
        await cancelRequest(lab.redis, { ...lab.addressOf(request), tenant }, give);
        await commit(streaming(lab.queue), [result(delivery, { action: "drop" })], IDLE_MS);
      }
    }
    expect(Math.abs((ran["fickle"] ?? 0) / (ran["steady"] ?? 0) - 1)).toBeLessThan(0.2);
  });

  it("cost nothing if they are cancelled before a worker has them", async () => {
    await backlog("patient", 20, 1);
    await share({ patient: 100 }, ["patient", 500]);
    const { queue, ready } = laneKeys(lab.lane);
    const cost = async () => Number(await lab.redis.hget(queue.replace("queue:", "window:"), "cost 2 patient"));
    const before = await cost();
    const [, fields] = (await lab.redis.xrange(ready, "-", "+")).at(-1) ?? ["", []];
    const request = fields[1]?.split("|")[0]?.split(":")[1] ?? "";
    const address = { ...lab.addressOf(request), tenant: "patient" };
    await cancelRequest(lab.redis, address, { code: "cancelled", message: "", ttlMs: 60_000, stream: true });
    expect(await withdraw(lab.redis, address)).toBe("withdrawn");
    expect(before).toBeCloseTo(100);
    expect(await cost()).toBeCloseTo(100 - 100 / 8);
  });
});
