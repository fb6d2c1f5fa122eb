import { afterAll, beforeAll, expect, it } from "vitest";
import { unpublishedKey } from "#shared/queue/keys.js";
import { noteUnpublished } from "#shared/queue/work/streams/note-unpublished.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { startRedis, type RedisServer } from "../brokers/redis.js";
import { silentLog } from "../silent.js";
import { settledFloor } from "./floor.js";

let server: RedisServer;
let redis: RedisClient;
beforeAll(async () => {
  server = await startRedis();
  redis = connectRedis({ url: server.url, name: "floor", log: silentLog });
  await whenReady(redis, AbortSignal.timeout(60_000));
});
afterAll(async () => {
  redis.disconnect();
  await server.dispose();
});

async function read() {
  const own = server.connect();
  const floor = await settledFloor([own], 0);
  own.disconnect();
  return floor;
}

it("takes what was left for a gateway that is gone as passing, and only with a TTL", async () => {
  await noteUnpublished(redis, "gw-gone", ["default:r"]);
  expect(await read()).toMatchObject({ strangeKeys: [], keysWithoutTtl: [] });
  await redis.persist(unpublishedKey("gw-gone"));
  expect(await read()).toMatchObject({ strangeKeys: [], keysWithoutTtl: [unpublishedKey("gw-gone")] });
});

it("names a key of an unknown kind", async () => {
  await redis.set("strange:1", "x");
  expect((await read()).strangeKeys).toEqual(["strange:1"]);
});
