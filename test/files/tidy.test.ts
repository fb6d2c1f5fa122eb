/** An object that upkeep cannot remove now does not keep upkeep from other work. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startFleet, type Fleet } from "../support/fleet/fleet.js";

const TENANT = "default";
/** The store refuses to remove this object. */
const STAYS = "file-stays";
let store: Server;
let fleet: Fleet;
/** The removed objects, and the number of refused attempts. */
const removed: string[] = [];
let refused = 0;

beforeAll(async () => {
  store = createServer((request, response) => {
    const id = request.url?.split("?")[0]?.split("/").at(-1) ?? "";
    if (id === STAYS) refused++;
    else if (request.method === "DELETE") removed.push(id);
    response.writeHead(id === STAYS ? 403 : 204).end();
  });
  await new Promise<void>((resolve) => store.listen(0, "127.0.0.1", resolve));
  fleet = await startFleet({
    gateways: 0,
    workers: 0,
    jobs: 1,
    models: [],
    direct: true,
    env: {
      BATON_FILES_URL: "s3://some-bucket/baton",
      AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${(store.address() as AddressInfo).port}`,
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "a",
      AWS_SECRET_ACCESS_KEY: "b",
    },
  });
});
afterAll(async () => {
  await fleet.dispose();
  store.closeAllConnections();
  await new Promise((resolve) => store.close(resolve));
});

it("a removal that fails leaves none of those that are due after it", { timeout: 60_000 }, async () => {
  const redis = fleet.redis.connect();
  const ids = [STAYS, "file-1", "file-2", "file-3"];
  for (const id of ids) await redis.hset(`{files}:file:${TENANT}:${id}`, "state", "gone", "bytes", "1");
  await redis.zadd("{files}:due", ...ids.flatMap((id, i) => [String(i + 1), `${TENANT}:${id}`]));
  const due = () => redis.zrange("{files}:due", "0", "-1");
  await expect.poll(due).toEqual([`${TENANT}:${STAYS}`]);
  expect([removed.toSorted(), refused > 0]).toEqual([ids.slice(1), true]);
  redis.disconnect();
});
