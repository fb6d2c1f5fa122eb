/** The scripts of every bucket learn which events a webhook wants. */
import { describe, expect, it } from "vitest";
import { wantedKey } from "#shared/queue/keys.js";
import { newSecret } from "../../gateway/webhooks/secrets.js";
import { Webhooks } from "../../gateway/webhooks/webhooks.js";
import { useLab } from "../support/queue/lab.js";
import { silentLog } from "../support/silent.js";

const BUCKETS = 3;

describe("the events that a tenant's webhooks want", () => {
  const lab = useLab();
  const webhooks = () => new Webhooks({ redis: lab.redis, buckets: BUCKETS });
  const make = (tenant: string, id: string) =>
    webhooks().make({
      id,
      tenant,
      url: "https://example.com/",
      events: ["job.failed"],
      enabled: true,
      createdAt: 1,
      secret: `open:${newSecret()}`,
    });
  const told = (tenant: string) =>
    Promise.all(Array.from({ length: BUCKETS }, (_, bucket) => lab.redis.hget(wantedKey(bucket), tenant)));
  const scriptCalls = async () => {
    const calls = /^cmdstat_evalsha:calls=(\d+)/m.exec(await lab.redis.info("commandstats"));
    return Number(calls?.[1] ?? 0);
  };

  it("are told again where a bucket has lost them, or knows of an older change", async () => {
    await make("forgotten", "wh_1");
    await lab.redis.hdel(wantedKey(1), "forgotten");
    await lab.redis.hset(wantedKey(2), "forgotten", "0|job.started");
    await webhooks().tellAll(silentLog);
    expect(await told("forgotten")).toEqual(Array(BUCKETS).fill("1|job.failed"));
  });

  it("are told to no bucket that knows of them, however many tenants there are", async () => {
    for (let i = 0; i < 20; i++) await make(`known-${i}`, "wh_1");
    const before = await scriptCalls();
    await webhooks().tellAll(silentLog);
    expect((await scriptCalls()) - before).toBe(0);
  });
});
