/**
 * If a primary dies before its replicas have received the last acknowledged writes, `replicated`
 * loses none of these writes. `strict` loses some, and the gateways say so, also to each client
 * whose steps are gone.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startFleet, type Fleet } from "../../support/fleet/fleet.js";
import { freePort } from "../../support/brokers/port.js";
import type { RunningProcess } from "../../support/brokers/process.js";
import { infoOf, settled, type RedisNode } from "../../support/brokers/redis-node.js";
import { replaceables, startReplaceable, type Replaceable } from "../../support/brokers/redis-replaceable.js";
import { until } from "../../support/until.js";
import { NumberedClients, type Seen } from "./numbered-load.js";

const full = process.env["BATON_FULL"] === "1";
/** Failovers, one after the other. */
const FAILOVERS = full ? 6 : 1;
const SEQUENCES = full ? 64 : 16;
/** Steps of each sequence that the primary answers and no replica receives. */
const UNHEARD = 3;
const PATIENCE_MS = 90_000;
const LIMIT_MS = full ? 900_000 : 240_000;

interface Said {
  readonly durability: string;
  readonly workers: readonly unknown[];
  readonly gone_back?: { readonly times: number; readonly lost_calls: number; readonly error: string };
}

describe.each(replaceables)("over %s", (kind) => {
  let redis: Replaceable;
  let fleet: Fleet;
  let urls: string[];
  let gateways: RunningProcess[];

  beforeEach(async () => {
    fleet = await startFleet({ gateways: 0, workers: 0, models: ["accumulate"] });
  });
  afterEach(async () => {
    await fleet.dispose();
    await redis.dispose();
  });

  async function begin(durability: "strict" | "replicated"): Promise<void> {
    const replicated = { "min-replicas-to-write": "1", "min-replicas-max-lag": "2" };
    redis = await startReplaceable(kind, durability === "replicated" ? replicated : {});
    const env = { BATON_REDIS_URL: redis.url, BATON_DURABILITY: durability };
    urls = [];
    gateways = [];
    for (let i = 0; i < 2; i++) {
      const port = String(await freePort());
      urls.push(`http://127.0.0.1:${port}`);
      gateways.push(
        fleet.launch("bundled/gateway/main.js", { ...env, BATON_HOST: "127.0.0.1", BATON_HTTP_PORT: port }),
      );
      fleet.launch("worker/supervisor.js", env);
    }
    for (const url of urls) await until(async () => (await fleetSays(url))?.workers.length === 2, PATIENCE_MS);
  }

  async function fleetSays(url: string): Promise<Said | undefined> {
    const answer = await fetch(`${url}/v2/fleet`).catch(() => undefined);
    return answer?.ok === true ? ((await answer.json()) as Said) : undefined;
  }

  const loggedBy = (gateway: RunningProcess) =>
    gateway.lines.filter(({ fields }) => fields["level"] === 50 && /gone back in time/.test(String(fields["msg"])));

  async function replicasOf(primary: RedisNode): Promise<RedisNode[]> {
    const living = redis.nodes.filter((node) => node !== primary && node.process.alive);
    const follow = await Promise.all(
      living.map(async ({ admin }) => Number(await infoOf(admin, "master_port")) === primary.port),
    );
    return living.filter((_, i) => follow[i]);
  }

  /**
   * Lets the primary of this key die after answers that its replicas do not receive.
   * @param meanwhile that ends before the primary dies
   */
  async function failOver(key: string, meanwhile: () => Promise<void>): Promise<void> {
    const primary = await redis.primaryOf(key);
    const replicas = await replicasOf(primary);
    for (const replica of replicas) replica.freeze();
    // Unread writes lie in the replicas' sockets until the primary closes them.
    await primary.admin.call("CLIENT", "KILL", "TYPE", "replica");
    try {
      await meanwhile();
      await primary.kill();
    } finally {
      for (const replica of replicas) replica.thaw();
    }
    await redis.whenReplaced(key, primary);
    await primary.restart();
    await redis.whenWhole();
  }

  async function underLoad(breaking: (clients: NumberedClients) => Promise<void>): Promise<Seen> {
    const steps = FAILOVERS * 40;
    const clients = new NumberedClients({
      urls,
      sequences: SEQUENCES,
      steps,
      patienceMs: PATIENCE_MS,
      restMs: 20,
    });
    const [seen] = await Promise.all([clients.run(), breaking(clients)]);
    console.log(`${kind}: ${JSON.stringify(seen)}`);
    return seen;
  }

  it("`strict` says what it has lost", { timeout: LIMIT_MS }, async () => {
    await begin("strict");
    const seen = await underLoad(async (clients) => {
      for (let i = 0; i < FAILOVERS; i++) {
        await clients.further(3);
        await failOver(`key-${i}`, () => clients.further(UNHEARD));
      }
    });
    expect(seen.wrong).toEqual([]);
    expect(seen.lost).toBeGreaterThan(0);
    expect(seen.toldAhead).toBeGreaterThan(0);
    expect(seen.seenInAnswer).toBeGreaterThan(0);
    for (const [i, gateway] of gateways.entries()) {
      await expect.poll(() => loggedBy(gateway).length, { timeout: PATIENCE_MS }).toBeGreaterThan(0);
      const said = await fleetSays(urls[i] ?? "");
      expect(said?.gone_back).toMatchObject({ error: expect.stringMatching(/lost admissions/) as string });
    }
  });

  it("`replicated` loses nothing that it has acknowledged", { timeout: LIMIT_MS }, async () => {
    await begin("replicated");
    const seen = await underLoad(async (clients) => {
      for (let i = 0; i < FAILOVERS; i++) {
        await clients.further(3);
        const key = `key-${i}`;
        const primary = await redis.primaryOf(key);
        // The primary takes writes until it counts its replicas as gone, and no client may hear of
        // those writes.
        const refuses = () =>
          settled(async () => /NOREPLICAS/.test(String(await primary.admin.del(key).catch((error: unknown) => error))));
        await failOver(key, refuses);
      }
    });
    expect(seen.wrong).toEqual([]);
    expect(seen.lost).toBe(0);
    for (const [i, gateway] of gateways.entries()) {
      expect(loggedBy(gateway)).toEqual([]);
      expect((await fleetSays(urls[i] ?? ""))?.gone_back).toBeUndefined();
    }
  });
});
