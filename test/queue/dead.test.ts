/** Requests that were set aside: their records, who may read them, and for how long. */
import { anyOwner } from "../../gateway/auth/owner/owner.js";
import { Caller } from "../../gateway/service/caller.js";
import { describe, expect, it } from "vitest";
import { decodeRequestId } from "#shared/queue/address.js";
import { readDeadRequest, removeDeadRequest } from "#shared/queue/dead/dead-request.js";
import { listDeadRequests } from "#shared/queue/dead/list.js";
import { tidyDeadRequests } from "#shared/queue/dead/tidy.js";
import { laneKeys, setAsideKey } from "#shared/queue/keys.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { DeadService } from "../../gateway/service/dead.js";
import { admit, IDLE_MS, LIMITS, put, result, useLab, applicant } from "../support/queue/lab.js";

describe("a request that is set aside", () => {
  const lab = useLab();
  const all = (tenant: string) => listDeadRequests(lab.redis, 0, { tenant, from: undefined, most: 100 });
  const setAside = async () => commit(lab.queue, [result(await lab.takeOne(), put("s"), "poison_request")], IDLE_MS);
  const own = async (tenant: string) => (await all(tenant)).found.filter(({ model }) => model === lab.lane.model);

  it("says whose it is and which job it ran, to its tenant alone", async () => {
    const record = { type: "infer", options: "{}", shown: "{}", body: Buffer.from("{}") };
    const one = { ...applicant(lab.lane, "r1", "a frame"), tenant: "blue", job: { keptMs: 5_000, record } };
    await admit(lab.redis, { gateway: "gw", limits: LIMITS }, [one]);
    await setAside();
    const [found] = await own("blue");
    expect(found).toMatchObject({
      reason: "poison_request",
      job: "blue:r1",
      tenant: "blue",
      bytes: 7,
      step: undefined,
    });
    expect(found?.request).toEqual({ bucket: 0, model: lab.lane.model, tenant: "blue", request: "r1" });
    expect(await own("default")).toEqual([]);
    if (found === undefined) return;
    expect(await readDeadRequest(lab.redis, found)).toEqual(found);
    await removeDeadRequest(lab.redis, found);
    expect(await own("blue")).toEqual([]);
  });

  it("may be a step, and one that ran for no job", async () => {
    await lab.admitStep({ request: "s1", start: true });
    await setAside();
    expect(await own("default")).toMatchObject([
      { job: undefined, step: { sequence: "u7", number: 1 }, request: { request: "s1" } },
    ]);
  });

  it("is told to nobody where it could not be read", async () => {
    const { dead } = laneKeys(lab.lane);
    await lab.redis.xadd(dead, "*", "reason", "unreadable", "m", "x", "b", "default:secret");
    await lab.redis.zadd(setAsideKey(0), 1, lab.lane.model);
    for (const tenant of ["default", "", "secret"]) expect(await own(tenant)).toEqual([]);
  });

  it("is found by pages, each once, the newest first, whatever others have had set aside between", async () => {
    const models = ["a", "b", "c"].map((name) => `${name}-${lab.lane.model}`);
    const written: string[] = [];
    for (let i = 0; i < 700; i++) {
      const tenant = i % 5 === 0 ? "green" : "red";
      const model = models[i % 3] ?? "";
      // Several entries have the very same id in different models.
      const entry = `${1_000 + Math.floor(i / 3)}-1`;
      const { dead } = laneKeys({ ...lab.lane, model });
      await lab.redis.xadd(dead, entry, "reason", "poison_request", "request", `${tenant}:r${i}`, "frame", "f");
      await lab.redis.zadd(setAsideKey(0), 1_000 + i, model);
      if (tenant === "green") written.push(`r${i}`);
    }
    const jobs = { retry: () => Promise.reject(new Error("no request is retried here")) };
    const requests = new DeadService({ redis: lab.redis, buckets: 1, jobs });
    const found: string[] = [];
    const times: number[] = [];
    let pages = 0;
    for (let after: string | undefined, more = true; more; pages++) {
      const page = await requests.list(Caller.of(anyOwner("green")), { limit: 10, after }, undefined);
      expect(page.data.length).toBeLessThanOrEqual(10);
      found.push(...page.data.map((one) => decodeRequestId(one.request_id ?? "", "green")?.request ?? ""));
      times.push(...page.data.map((one) => Date.parse(one.set_aside_at)));
      more = page.hasMore;
      after = page.last;
    }
    expect(found.toSorted()).toEqual(written.toSorted());
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    expect(pages).toBeLessThan(40);
  });

  it("goes when it is time, and its model is told of no more once none is left", async () => {
    const { dead } = laneKeys(lab.lane);
    const models = () => lab.redis.zrange(setAsideKey(0), "0", "-1");
    const now = Number((await lab.redis.time())[0]) * 1_000;
    await lab.redis.xadd(dead, `${now - 20_000}-1`, "reason", "poison_request", "request", "default:old");
    await lab.redis.xadd(dead, `${now - 5_000}-1`, "reason", "poison_request", "request", "default:new");
    // An earlier version set these requests aside without a note, and its workers keep the requests
    // for 15 s.
    await lab.redis.pexpire(dead, 10_000);
    await tidyDeadRequests(lab.redis, 0, [lab.lane.model]);
    expect(await own("default")).toMatchObject([{ request: { request: "new" } }]);
    await lab.redis.del(dead);
    expect(await models()).toContain(lab.lane.model);
    await tidyDeadRequests(lab.redis, 0, []);
    expect(await models()).not.toContain(lab.lane.model);
  });
});
