/**
 * An owner has as many generations that have not ended as it may have, however each of them ends.
 */
import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import type { Admission, Applicant } from "#shared/queue/admission/admit.js";
import type { OwnerLimit } from "#shared/queue/admission/limits.js";
import { recount } from "#shared/queue/admission/recount.js";
import { withdraw } from "#shared/queue/admission/withdraw.js";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import { loadKey, loadTurnKey } from "#shared/queue/keys.js";
import { admit, applicant, LIMITS, SEQUENCE, useLab } from "../support/queue/lab.js";

const TERMS = { gateway: "gw", limits: LIMITS };
const load = loadKey(undefined);

describe("generations", () => {
  const lab = useLab();
  let key: OwnerLimit;
  let tenant: OwnerLimit;
  beforeEach(() => {
    key = { name: `k:${randomUUID().slice(0, 12)}`, most: 2 };
    tenant = { name: `t:${randomUUID().slice(0, 12)}`, most: 3 };
  });

  const generation = (request: string, owners: readonly OwnerLimit[], more: Partial<Applicant> = {}): Applicant => ({
    ...applicant(lab.lane, request, "prompt"),
    attendedMs: 60_000,
    owners,
    ...more,
  });
  const send = async (...applicants: Applicant[]): Promise<Admission[]> => admit(lab.redis, TERMS, applicants);
  const words = (answers: readonly Admission[]): string[] => answers.map(({ said }) => said);
  const counted = async (owner: OwnerLimit): Promise<string | null> =>
    (await lab.redis.hget(load, `g:${owner.name}`))?.split(" ")[0] ?? null;
  const cancel = (request: string) =>
    cancelRequest(lab.redis, lab.addressOf(request), { code: "cancelled", message: "", ttlMs: 60_000, stream: false });

  it("count for key and tenant, and the first limit in the way refuses", async () => {
    const answers = await send(...["r1", "r2", "r3"].map((request) => generation(request, [key, tenant])));
    expect(answers).toEqual([{ said: "admitted" }, { said: "admitted" }, { said: "too-many", name: key.name }]);
    expect([await counted(key), await counted(tenant)]).toEqual(["2", "2"]);
    const others = await send(generation("r4", [tenant]), generation("r5", [tenant]));
    expect(others).toEqual([{ said: "admitted" }, { said: "too-many", name: tenant.name }]);
  });

  it("are one less when one ends, once, and none when all have ended", async () => {
    await send(generation("r1", [key, tenant]), generation("r2", [key, tenant]));
    await cancel("r1");
    await cancel("r1");
    expect([await counted(key), await counted(tenant)]).toEqual(["1", "1"]);
    expect(words(await send(generation("r3", [key, tenant])))).toEqual(["admitted"]);
    await cancel("r2");
    await withdraw(lab.redis, lab.addressOf("r3"));
    await cancel("r3");
    expect([await counted(key), await counted(tenant)]).toEqual([null, null]);
  });

  it("leave nothing when refused, and are known under their key although there is no room", async () => {
    await send(generation("r1", [{ ...key, most: 1 }], { digest: "d" }));
    expect(words(await send(generation("r2", [{ ...key, most: 1 }])))).toEqual(["too-many"]);
    expect(words(await send(generation("r1", [{ ...key, most: 1 }], { digest: "d" })))).toEqual(["known"]);
    expect(await counted(key)).toBe("1");
    expect(await lab.redis.exists(`out:${lab.addressOf("r2").request}`)).toBe(0);
  });

  it("may be turns of a conversation", async () => {
    const turn = { sequence: { name: SEQUENCE, start: true, end: false } };
    expect(words(await send(generation("r1", [key], turn)))).toEqual(["admitted"]);
    expect(await counted(key)).toBe("1");
    const open = Object.values(await lab.redis.hgetall(`open:${load.slice("load:".length)}`));
    expect(open.some((facts) => facts.endsWith(`|1|${SEQUENCE}|of:${key.name}`))).toBe(true);
  });

  it("of 0 are none", async () => {
    expect(words(await send(generation("r1", [{ ...key, most: 0 }])))).toEqual(["too-many"]);
  });

  it("are counted again if a person has changed the counts", async () => {
    await send(generation("r1", [key]));
    await lab.redis.hset(load, `g:${key.name}`, "7 0", `g:${tenant.name}`, "5 0");
    await lab.redis.unlink(loadTurnKey(load));
    await recount(lab.redis, load, 60_000, new AbortController().signal);
    expect([await counted(key), await counted(tenant)]).toEqual(["1", null]);
  });
});
