/**
 * The typed wrapper of give-outcome.lua: ends a request without running it, because the deadline
 * passed or the step is gone.
 */
import type { StoredOutcome } from "../../contract/outcome.js";
import type { RedisClient } from "../../redis/connect.js";
import { bytes, defineScript, list, text, word } from "../../redis/script.js";
import { parsePin, type RequestAddress } from "../address.js";
import { loadKeyOf } from "../pieces/load.js";
import { GROUP, outcomeKey } from "../keys.js";

export type Given =
  /** The version of the request's model. */
  | { readonly said: "given"; readonly version: string }
  | { readonly said: "sealed" | "held" | "unknown" }
  | { readonly said: "known"; readonly outcome: { readonly kind: string; readonly body: Buffer } };

const answers = ["given", "known", "sealed", "held", "unknown"] as const;

const script = defineScript(
  new URL("./give-outcome.lua", import.meta.url),
  (reply): Given => {
    const [first, second, body] = list(reply);
    const said = word(first, answers);
    if (said === "given") return { said, version: parsePin(text(second)).version };
    return said === "known" ? { said, outcome: { kind: text(second), body: bytes(body) } } : { said };
  },
  {
    keys: ["record", "load"],
    args: ["kind", "body", "ttl", "mode", "group"],
    durable: true,
  },
);

/**
 * Safe to repeat: a repeated call finds the outcome of the earlier call as `known`.
 * @param ttlMs Redis keeps the outcome for at least this long, or longer if admission said so
 * @param evenSealed whether a stream with a final record gets this outcome too, because surely no
 * worker can commit the stream any more
 */
export function giveOutcome(
  redis: RedisClient,
  address: RequestAddress,
  { kind, body }: StoredOutcome,
  ttlMs: number,
  evenSealed = false,
): Promise<Given> {
  const keys = { record: outcomeKey(address), load: loadKeyOf(redis, address.bucket) };
  return script(redis, keys, { kind, body, ttl: ttlMs, mode: evenSealed ? 1 : 0, group: GROUP });
}

/**
 * Does the same for a request that has waited for too long, and takes the request out of the queue.
 * Leaves a request that a worker holds to that worker (`held`), and so a step of a sequence. Safe
 * to repeat.
 */
export function giveOutcomeInQueue(
  redis: RedisClient,
  address: RequestAddress,
  { kind, body }: StoredOutcome,
  ttlMs: number,
): Promise<Given> {
  const keys = { record: outcomeKey(address), load: loadKeyOf(redis, address.bucket) };
  return script(redis, keys, { kind, body, ttl: ttlMs, mode: 2, group: GROUP });
}
