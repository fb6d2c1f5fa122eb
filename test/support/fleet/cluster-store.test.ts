import { afterAll, beforeAll, expect, it } from "vitest";
import { promote, settled } from "../brokers/redis-node.js";
import { clusterStore } from "./cluster-store.js";
import type { Store } from "./store.js";

let store: Store;
beforeAll(async () => {
  store = await clusterStore();
});
afterAll(() => store.dispose());

it("is read on through a failover, keys of all slots at a time", { timeout: 120_000 }, async () => {
  const keys = Array.from({ length: 60 }, (_, i) => `key-${i}`);
  const reader = store.connectReader();
  const over = new AbortController();
  let rounds = 0;
  const reading = (async () => {
    while (!over.signal.aborted) {
      const found = await Promise.all(keys.map((key) => reader.hget(key, "field")));
      expect(found).toEqual(keys.map(() => null));
      rounds++;
    }
  })();
  const first = await store.mastersNow();
  const replica = store.servers.find((server) => !first.includes(server))?.connect();
  if (replica === undefined) throw new Error("a Cluster has replicas");
  await promote(replica);
  await settled(async () => (await store.mastersNow()).some((server) => !first.includes(server)));
  const before = rounds;
  await settled(() => Promise.resolve(rounds > before + 2));
  over.abort();
  await reading;
  reader.disconnect();
  replica.disconnect();
});
