/** An API key that has every limit, and reaches none of them while a row is measured. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { connectRedis, whenReady } from "#shared/redis/connect.js";
import { Keys } from "../../../gateway/auth/keys.js";
import { usualScopes } from "../../../gateway/auth/owner/scopes.js";
import { silentLog } from "../../support/silent.js";

export const benchPepper = Buffer.alloc(32, 7);
const most = 1_000_000_000;
const limits = {
  requests_per_second: 100_000,
  burst: 1_000_000,
  tokens_per_minute: 6_000_000,
  concurrent_streams: 1_000_000,
  quota: { requests: most, tokens: most, compute_ms: most, period: "month" },
} as const;
const ofTenant = { ...limits, queued_requests: most, queued_bytes: most, body_bytes: most };

/** @returns settings of a fleet that asks for keys, and whose tenants have every limit, too */
export function keyedSettings(folder: string): Readonly<Record<string, string>> {
  const file = join(folder, "pepper");
  writeFileSync(file, `${benchPepper.toString("base64")}\n`, { mode: 0o600 });
  return {
    BATON_AUTH: "keys",
    BATON_AUTH_SECRET_FILE: file,
    // The start asks without a key whether the models are ready.
    BATON_AUTH_OPEN: "health,metadata",
    BATON_DEFAULT_LIMITS: JSON.stringify(ofTenant),
  };
}

export async function makeLimitedKey(redisUrl: string): Promise<string> {
  const redis = connectRedis({ url: redisUrl, name: "bench", log: silentLog });
  try {
    await whenReady(redis, AbortSignal.timeout(60_000));
    const terms = { tenant: "acme", name: "", scopes: usualScopes, models: ["*"], limits, livesMs: undefined };
    return (await new Keys({ redis, pepper: benchPepper }).make({ ...terms, createdBy: undefined })).text;
  } finally {
    redis.disconnect();
  }
}
