/** Keys for a fleet whose gateways ask for them. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { Keys, type KeyTerms } from "../../gateway/auth/keys.js";
import { usualScopes } from "../../gateway/auth/scopes.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import type { RunningFleet } from "../support/fleet/use-fleet.js";
import { silentLog } from "../support/silent.js";

export const pepper = Buffer.alloc(32, 7);

/** A folder with the file `pepper`, which goes after the tests of the file. */
export function useFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "baton-keys-"));
  writeFileSync(join(folder, "pepper"), `${pepper.toString("base64")}\n`);
  afterAll(() => rmSync(folder, { recursive: true }));
  return folder;
}

export interface TestKeys {
  readonly keys: Keys;
  readonly redis: RedisClient;
  /** Makes a key of the tenant acme with the usual scopes, unless the terms say otherwise. */
  make(terms?: Partial<KeyTerms>): Promise<{ readonly id: string; readonly text: string }>;
}

/** The keys of a fleet; usable within tests. */
export function useKeys(served: RunningFleet): TestKeys {
  let redis: RedisClient | undefined;
  const open = (): RedisClient => {
    if (redis === undefined) throw new Error("the fleet has not been started");
    return redis;
  };
  beforeAll(async () => {
    redis = connectRedis({ url: served.fleet.redis.url, name: "test", log: silentLog });
    await whenReady(redis, AbortSignal.timeout(60_000));
  });
  afterAll(() => redis?.disconnect());
  const usual = { tenant: "acme", name: "", scopes: usualScopes, models: ["*"], livesMs: undefined };
  return {
    get redis() {
      return open();
    },
    get keys() {
      return new Keys({ redis: open(), pepper });
    },
    async make(terms = {}) {
      const { record, text } = await this.keys.make({ ...usual, createdBy: undefined, ...terms });
      return { id: record.id, text };
    },
  };
}
