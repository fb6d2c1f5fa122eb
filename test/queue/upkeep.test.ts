/** The upkeep of the jobs process, over a real Redis and at the test's own pace. */
import { afterEach, describe, expect, it } from "vitest";
import type { RequestAddress } from "#shared/queue/address.js";
import { eventsKey, jobKey, jobsKey, jobTenantsKey, laneKeys, loadKey, registryKeys } from "#shared/queue/keys.js";
import { tidyJobs } from "#shared/queue/jobs/tidy.js";
import { noteWanted } from "#shared/queue/webhooks/note-wanted.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { notePins } from "#shared/queue/work/upkeep/note-pins.js";
import { lookAfterAll, type UpkeepSettings } from "../../gateway/doors/jobs/upkeep.js";
import { timeAt } from "#shared/redis/clock.js";
import { changeFacts } from "../support/queue/facts.js";
import { admit, IDLE_MS, put, result, SEQUENCE, useLab, LIMITS, applicant } from "../support/queue/lab.js";
import { silentLog } from "../support/silent.js";
import { until } from "../support/until.js";

const TENANT = "default";
const record = { type: "infer", options: "{}", shown: "{}", body: Buffer.from("{}") };

describe("the upkeep", () => {
  const lab = useLab();
  const settings = (more: Partial<UpkeepSettings> = {}): UpkeepSettings => ({
    redis: lab.redis,
    buckets: 1,
    name: `jobs-${lab.lane.model}`,
    served: () => new Set(),
    look: () => Promise.resolve(),
    log: silentLog,
    everyMs: 20,
    tidyEveryMs: 5,
    ...more,
  });
  const job = (request: string, more: object = {}) => ({
    ...applicant(lab.lane, request, request),
    outcomeTtlMs: 600_000,
    job: { keptMs: 5_000, record },
    ...more,
  });
  const submit = (...requests: readonly ReturnType<typeof job>[]) =>
    admit(lab.redis, { gateway: "gw", limits: { ...LIMITS, queue: 1_000 } }, requests);
  const places = async () =>
    (await lab.redis.zrange(jobsKey(0, TENANT), "0", "-1")).filter((id) => id.startsWith(`${lab.lane.model}:`));
  afterEach(() => lab.redis.del(registryKeys.tidying));
  const during = async (upkeep: UpkeepSettings, isDone: () => Promise<boolean>) => {
    const closing = new AbortController();
    const running = lookAfterAll(upkeep, closing.signal);
    try {
      await until(isDone);
    } finally {
      closing.abort();
      await running;
    }
  };

  it("lets sequences of a model that nobody serves idle out, and notes it for those who want to be told", async () => {
    const { model, version, digest } = lab.lane;
    await notePins(lab.redis, [{ model, version, digest, streams: false, maxIdleMs: IDLE_MS }]);
    await noteWanted(lab.redis, [0], { tenant: TENANT, revision: 1, events: ["sequence.expired"] });
    await lab.admitStep({ request: "s1", start: true });
    await commit(lab.queue, [result(await lab.takeOne(), put("s"))], IDLE_MS);
    const lapsedAt = 1_790_000_000_000;
    await changeFacts(lab.redis, lab.lane, SEQUENCE, { lapses: lapsedAt });
    await lab.redis.zadd(laneKeys(lab.lane).live, lapsedAt, SEQUENCE);
    const events = () => lab.redis.xrange(eventsKey(0), "-", "+");
    await during(settings(), async () => (await events()).length > 0);
    const facts = { model, version, sequence: "u7", steps: 1, last: String(lapsedAt - IDLE_MS) };
    expect((await events()).map(([, [, , , type, , data]]) => [type, JSON.parse(data ?? "")])).toEqual([
      ["sequence.expired", facts],
    ]);
    await lab.redis.del(eventsKey(0));
  });

  it("counts the ended jobs of models that are gone under one name", async () => {
    const { model, version, digest } = lab.lane;
    await notePins(lab.redis, [{ model, version, digest, streams: false, maxIdleMs: undefined }]);
    const counts = { [`e:failed:${model}`]: "3 0", "e:failed:a": "2 0", "e:failed:b": "1 0", "e:completed:b": "4 0" };
    await lab.redis.hset(loadKey(undefined), { ...counts, "e:failed:_other": "1 0", "e:failed:served": "5 0" });
    const ends = async () =>
      Object.fromEntries(
        Object.entries(await lab.redis.hgetall(loadKey(undefined))).filter(([field]) => field.startsWith("e:")),
      );
    await during(settings({ served: () => new Set(["served"]) }), async () => !("e:completed:b" in (await ends())));
    expect(await ends()).toEqual({
      [`e:failed:${model}`]: "3 0",
      "e:failed:served": "5 0",
      "e:failed:_other": "4 0",
      "e:completed:_other": "4 0",
    });
    await lab.redis.del(loadKey(undefined));
  });

  it("leaves sequences of served models to their workers", async () => {
    const { model, version, digest } = lab.lane;
    await notePins(lab.redis, [{ model, version, digest, streams: false, maxIdleMs: IDLE_MS }]);
    await lab.redis.zadd(laneKeys(lab.lane).live, 1, "default:u1");
    let rounds = 0;
    const served = () => {
      rounds++;
      return new Set([model]);
    };
    await during(settings({ served }), () => Promise.resolve(rounds > 5));
    expect(await lab.redis.zcard(laneKeys(lab.lane).live)).toBe(1);
  });

  it("takes jobs that are gone out of the index, however many, and forgets tenants without jobs", async () => {
    for (let i = 0; i < 5; i++) await submit(...Array.from({ length: 50 }, (_, j) => job(`r${i}-${j}`)));
    expect(await lab.redis.smembers(jobTenantsKey(0))).toContain(TENANT);
    const stays = lab.addressOf("r1-7");
    for (const id of await places()) {
      const key = `job:{0}:${id}`;
      if (jobKey(stays) !== key) await lab.redis.del(jobKey({ ...stays, request: id.split(":")[2] ?? "" }));
    }
    await lab.redis.hset(jobKey(stays), "at", "1");
    await during(settings(), async () => (await places()).length <= 1);
    expect(await places()).toEqual([`${lab.lane.model}:${TENANT}:r1-7`]);
    await lab.redis.del(jobsKey(0, TENANT));
    await during(settings(), async () => (await lab.redis.sismember(jobTenantsKey(0), TENANT)) === 0);
  });

  it("looks at jobs that nobody has begun in time, and at no others", async () => {
    await submit(job("late", { deadlineMs: 1 }), job("early"), job("begun", { deadlineMs: 1 }));
    await lab.redis.hset(`out:${jobKey(lab.addressOf("begun")).slice("job:".length)}`, "began", "1");
    const looked: RequestAddress[] = [];
    const look = (one: RequestAddress) => Promise.resolve(void looked.push(one));
    await during(settings({ look }), () => Promise.resolve(looked.length > 0));
    expect(new Set(looked.map(({ request }) => request))).toEqual(new Set(["late"]));
    expect(looked[0]).toEqual(lab.addressOf("late"));
  });

  it("goes through an index a part at a time", async () => {
    await submit(...Array.from({ length: 9 }, (_, i) => job(`p${i}`, { deadlineMs: 1 })));
    const admitted = await timeAt(lab.redis, lab.lane.model);
    await until(async () => (await timeAt(lab.redis, lab.lane.model)) > admitted + 1);
    const found: string[] = [];
    let from: number | undefined = 0;
    for (let calls = 0; from !== undefined && calls < 200; calls++) {
      const part: Awaited<ReturnType<typeof tidyJobs>> = await tidyJobs(lab.redis, 0, TENANT, from, 4);
      expect(part.overdue.length).toBeLessThanOrEqual(4);
      found.push(...part.overdue.filter(({ model }) => model === lab.lane.model).map(({ request }) => request));
      from = part.next;
    }
    expect(found.toSorted()).toEqual(Array.from({ length: 9 }, (_, i) => `p${i}`));
  });

  it("is done by one at a time, and by another one when that is gone", async () => {
    let rounds = 0;
    const served = () => {
      rounds++;
      return new Set<string>();
    };
    await lab.redis.set(registryKeys.tidying, "somebody", "PX", 600_000);
    let looks = 0;
    await during(settings({ served }), () => Promise.resolve(++looks > 20));
    expect(rounds).toBe(0);
    await lab.redis.del(registryKeys.tidying);
    await during(settings({ served }), () => Promise.resolve(rounds > 0));
    expect([null, settings().name]).toContain(await lab.redis.get(registryKeys.tidying));
  });
});
