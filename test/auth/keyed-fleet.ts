/** One fleet that asks for keys, for all tests of a file, and the keys and tenants of clients. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { Keys, type KeyTerms } from "../../gateway/auth/keys.js";
import { usualScopes } from "../../gateway/auth/scopes.js";
import { readTenants } from "#shared/queue/owners/owners.js";
import { writeTenant } from "#shared/queue/owners/write-owner.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import type { FleetPlan } from "../support/fleet/fleet.js";
import { useFleet, type RunningFleet } from "../support/fleet/use-fleet.js";
import { silentLog } from "../support/silent.js";

const pepper = Buffer.alloc(32, 7);

export interface Key {
  readonly id: string;
  readonly text: string;
  /** The headers of a request with this key. */
  readonly headers: { readonly authorization: string };
}

export interface KeyedFleet {
  readonly served: RunningFleet;
  readonly keys: Keys;
  readonly redis: RedisClient;
  /** Makes a key, of the tenant `acme` unless the terms say otherwise. */
  readonly make: (terms?: Partial<KeyTerms>) => Promise<Key>;
  /** Replaces these members of a tenant's record. */
  readonly setTenant: (id: string, members: object) => Promise<void>;
}

export function useKeyedFleet(plan: FleetPlan): KeyedFleet {
  const folder = mkdtempSync(join(tmpdir(), "baton-pepper-"));
  const pepperFile = join(folder, "pepper");
  writeFileSync(pepperFile, `${pepper.toString("base64")}\n`, { mode: 0o600 });
  afterAll(() => rmSync(folder, { recursive: true }));
  // The fleet asks without a key whether its models are ready.
  const open = { BATON_AUTH_OPEN: "health,metadata" };
  const env = { ...open, BATON_AUTH: "keys", BATON_AUTH_SECRET_FILE: pepperFile, ...plan.env };
  const served = useFleet({ ...plan, env });

  let redis: RedisClient;
  let keys: Keys;
  beforeAll(async () => {
    redis = connectRedis({ url: served.fleet.redis.url, name: "test", log: silentLog });
    await whenReady(redis, AbortSignal.timeout(60_000));
    keys = new Keys({ redis, pepper });
  });
  afterAll(() => redis.disconnect());
  return {
    served,
    get redis() {
      return redis;
    },
    get keys() {
      return keys;
    },
    async make(terms = {}) {
      const usual = { name: "", scopes: usualScopes, models: ["*"], livesMs: undefined, createdBy: undefined };
      const { record, text } = await keys.make({ tenant: "acme", ...usual, ...terms });
      return { id: record.id, text, headers: { authorization: `Bearer ${text}` } };
    },
    async setTenant(id, members) {
      const [from] = await readTenants(redis, [id]);
      const to = JSON.stringify({ ...(JSON.parse(from ?? "{}") as object), id, ...members });
      if (!(await writeTenant(redis, id, { from, to }))) throw new Error(`tenant ${id} was changed meanwhile`);
    },
  };
}
