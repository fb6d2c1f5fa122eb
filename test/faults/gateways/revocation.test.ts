/**
 * A key is revoked in a fleet of four gateways, one of which Redis cannot reach just then. All end
 * what the key has open, that one when it is back.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { WebSocket } from "ws";
import { useKeyedFleet, type Key } from "../../auth/keyed.js";
import { ask } from "../../jobs/ask.js";
import { Proxy } from "../../support/fleet/proxy.js";
import { readUntil } from "../../support/until.js";

const MODEL = "gen-mha";
const GRACE_MS = 2_500;
const fleet = useKeyedFleet({ models: [MODEL], gateways: 3, env: { BATON_AUTH_GRACE_MS: String(GRACE_MS) } });
const { served, make } = fleet;

/** The longest wait for the end of what a revoked key has open, in ms. */
const LIMIT_MS = 5_000;
const within = <T>(some: Promise<T>): Promise<T | "too late"> =>
  Promise.race([some, new Promise<"too late">((resolve) => setTimeout(() => resolve("too late"), LIMIT_MS))]);

let line: Proxy;
/** Of the gateway behind the line. */
let lone: string;
let revoked: Key;
let good: Key;

beforeAll(async () => {
  line = await Proxy.start(served.fleet.redis.port);
  const redis = `redis://127.0.0.1:${line.port}`;
  const gateway = served.fleet.launch("bundled/gateway/main.js", { BATON_REDIS_URL: redis, BATON_HTTP_PORT: "0" });
  const { fields } = await gateway.waitForMessage("gateway listening");
  lone = `http://127.0.0.1:${String(fields["port"])}`;
  [revoked, good] = [await make(), await make()];
});
afterAll(() => line.dispose());

const statusOf = async (key: Key): Promise<number> =>
  (await fetch(`${lone}/v1/models`, { headers: key.headers })).status;

/** What a gateway sends to the readers of a request until their end. */
interface Reading {
  readonly events: Promise<string>;
  readonly socket: Promise<string>;
}

async function read(url: string, id: string): Promise<Reading> {
  const requests = `${url}/v2/requests/${id}`;
  const events = await fetch(`${requests}/events`, { headers: revoked.headers });
  expect(events.status).toBe(200);
  const client = new WebSocket(`${requests.replace("http", "ws")}/ws`, { headers: revoked.headers });
  const socket = new Promise<string>((resolve) =>
    client.on("close", (code, reason) => resolve(`${code} ${reason.toString()}`)),
  );
  await new Promise((resolve) => client.once("open", resolve));
  return { events: events.text(), socket };
}

async function expectEnded({ events, socket }: Reading): Promise<void> {
  expect(await events).toContain('"code":"invalid_api_key"');
  expect(await socket).toBe("4401 invalid_api_key");
}

it("ends what the key has open at every gateway", async () => {
  for (const worker of served.fleet.workers) await worker.kill();
  const asked = {
    body: { text_input: "a lap", max_tokens: 300 },
    headers: { ...revoked.headers, prefer: "respond-async" },
  };
  const { body } = await ask(`${served.url}/v2/models/${MODEL}/generate`, asked);
  const readings = await Promise.all(served.fleet.urls.map((url) => read(url, body.id)));
  const apart = await read(lone, body.id);
  expect(await statusOf(good)).toBe(200);

  line.blackHole("toServer", "toClient");
  await fleet.keys.revoke(revoked.id);
  expect(await within(Promise.all(readings.map(expectEnded)))).not.toBe("too late");
  expect(await statusOf(await make())).toBe(503);
  expect(
    await readUntil(
      () => statusOf(good),
      (status) => status !== 200,
    ),
  ).toBe(503);
  expect(await statusOf(revoked)).toBe(503);

  line.heal();
  await expectEnded(apart);
  expect(
    await readUntil(
      () => statusOf(good),
      (status) => status !== 503,
    ),
  ).toBe(200);
  expect(await statusOf(revoked)).toBe(401);
});
