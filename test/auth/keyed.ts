/** Fleets that ask for keys, and the keys and tenants of their clients. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { Keys, type KeyTerms } from "../../gateway/auth/keys.js";
import { usualScopes } from "../../gateway/auth/owner/scopes.js";
import { readTenants } from "#shared/queue/owners/owners.js";
import { writeTenant } from "#shared/queue/owners/write-owner.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import type { FleetPlan } from "../support/fleet/fleet.js";
import { useFleet, type RunningFleet } from "../support/fleet/use-fleet.js";
import { silentLog } from "../support/silent.js";

export const pepper = Buffer.alloc(32, 7);

export const usualTerms: KeyTerms = {
  tenant: "acme",
  name: "",
  scopes: usualScopes,
  models: ["*"],
  livesMs: undefined,
  createdBy: undefined,
};

/** A folder with the file `pepper`, which goes after the tests of the file. */
export function useFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "baton-keys-"));
  writeFileSync(join(folder, "pepper"), `${pepper.toString("base64")}\n`, { mode: 0o600 });
  afterAll(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** @returns the settings of a gateway that asks for keys; `folder` is from `useFolder` */
export function keyedEnv(folder: string): Readonly<Record<string, string>> {
  return { BATON_AUTH: "keys", BATON_AUTH_SECRET_FILE: join(folder, "pepper") };
}

export interface Key {
  readonly id: string;
  readonly text: string;
  /** The headers of a request with this key. */
  readonly headers: { readonly authorization: string };
}

export interface TestKeys {
  readonly keys: Keys;
  readonly redis: RedisClient;
  /** Makes a key of the usual terms, but for the terms that are given. */
  readonly make: (terms?: Partial<KeyTerms>) => Promise<Key>;
  /** Replaces these members of a tenant's record. */
  readonly setTenant: (id: string, members: object) => Promise<void>;
}

/** The keys of a fleet; usable within tests. */
export function useKeys(served: RunningFleet): TestKeys {
  let redis: RedisClient | undefined;
  const open = (): RedisClient => {
    if (redis === undefined) throw new Error("the fleet has not been started");
    return redis;
  };
  const keys = (): Keys => new Keys({ redis: open(), pepper });
  beforeAll(async () => {
    redis = connectRedis({ url: served.fleet.redis.url, name: "test", log: silentLog });
    await whenReady(redis, AbortSignal.timeout(60_000));
  });
  afterAll(() => redis?.disconnect());
  return {
    get redis() {
      return open();
    },
    get keys() {
      return keys();
    },
    async make(terms = {}) {
      const { record, text } = await keys().make({ ...usualTerms, ...terms });
      return { id: record.id, text, headers: { authorization: `Bearer ${text}` } };
    },
    async setTenant(id, members) {
      const [from] = await readTenants(open(), [id]);
      const to = JSON.stringify({ ...(JSON.parse(from ?? "{}") as object), id, ...members });
      if (!(await writeTenant(open(), id, { from, to }))) throw new Error(`tenant ${id} was changed meanwhile`);
    },
  };
}

/** One fleet that asks for keys, for all tests of a file. */
export function useKeyedFleet(plan: FleetPlan): TestKeys & { readonly served: RunningFleet } {
  // The fleet's start asks without a key whether its models are ready.
  const env = { ...keyedEnv(useFolder()), BATON_AUTH_OPEN: "health,metadata", ...plan.env };
  const served = useFleet({ ...plan, env });
  return Object.assign(useKeys(served), { served });
}
