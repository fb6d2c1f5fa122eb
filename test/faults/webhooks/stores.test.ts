/** The jobs process on a Redis Cluster, and behind Sentinels: also after a master is replaced. */
import { afterEach, describe, expect, it } from "vitest";
import { connectRedis, whenReady } from "#shared/redis/connect.js";
import { clusterStore } from "../../support/fleet/cluster-store.js";
import { startFleet, type Fleet } from "../../support/fleet/fleet.js";
import { sentinelStore } from "../../support/fleet/sentinel-store.js";
import { noteExpiries, Receiver, verified, WebhookClient } from "../../support/jobs/webhooks.js";
import { silentLog } from "../../support/silent.js";

const MESSAGES = 12;
/** A failover takes a while, and then the takeover of deliveries. */
const REPLACED = { timeout: 60_000 };

describe("webhooks", () => {
  let fleet: Fleet | undefined;
  let receiver: Receiver | undefined;
  afterEach(async () => {
    await receiver?.dispose();
    await fleet?.dispose();
  });

  it.each([
    ["a Cluster", clusterStore],
    ["Sentinels", sentinelStore],
  ])(
    "arrive from %s, before and after a master has died",
    async (_, open) => {
      const store = await open();
      const env = { BATON_WEBHOOK_RETRY_MS: "100" };
      fleet = await startFleet({ workers: 0, jobs: 1, models: [], store, env });
      receiver = await Receiver.start();
      const { received } = receiver;
      const client = new WebhookClient(fleet.urls[0] ?? "");
      const { secret } = await client.register(receiver.url("/"));
      const redis = connectRedis({ url: store.urls.gateway, name: "test", log: silentLog });
      await whenReady(redis, AbortSignal.timeout(60_000));
      const ids = () => new Set(received.map(({ id }) => id)).size;
      await noteExpiries(redis, "default", MESSAGES);
      await expect.poll(ids, REPLACED).toBe(MESSAGES);
      const [master] = await store.mastersNow();
      await master?.kill();
      let noted = 0;
      // A write that fails may have taken effect; each attempt is another event all the same.
      while (noted < MESSAGES) noted += await noteExpiries(redis, "default").then(() => 1, pauseFor(100));
      await expect.poll(ids, REPLACED).toBeGreaterThanOrEqual(2 * MESSAGES);
      for (const one of received) expect(verified(one, secret).type).toBe("sequence.expired");
      redis.disconnect();
    },
    180_000,
  );
});

function pauseFor(ms: number): () => Promise<number> {
  return () => new Promise((resolve) => setTimeout(() => resolve(0), ms));
}
