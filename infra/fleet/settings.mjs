/** What `npm start` reads from the environment, checked before anything is started. The processes check their own settings themselves. */
import { join } from "node:path";
import { root } from "../setup/paths.mjs";
import { Refusal } from "../setup/refusal.mjs";

/** Not the servers' usual ports: a system Redis may well be running, and this one is ours alone. */
const DEFAULT_PORTS = { redis: 16_379, nats: 14_222 };

export function startSettings(env) {
  return {
    host: env.BATON_HOST || "127.0.0.1", // nothing here asks for a password, so other machines are let in only when told
    httpPort: number(env, "BATON_HTTP_PORT", 8000, 65_535),
    workers: number(env, "BATON_WORKERS", 2, 64),
    models: env.BATON_MODEL_REPOSITORY || join(root, "infra/models"),
    /** `fixed`: asked for by the user, so another one would be a surprise. */
    redis: { port: number(env, "BATON_REDIS_PORT", DEFAULT_PORTS.redis, 65_535), fixed: Boolean(env.BATON_REDIS_PORT) },
    nats: { port: number(env, "BATON_NATS_PORT", DEFAULT_PORTS.nats, 65_535), fixed: Boolean(env.BATON_NATS_PORT) },
  };
}

function number(env, name, fallback, most) {
  const text = env[name];
  if (text === undefined || text === "") return fallback;
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw new Refusal(`${name} is "${text}", and must be a whole number from 1 to ${most}.`);
}
