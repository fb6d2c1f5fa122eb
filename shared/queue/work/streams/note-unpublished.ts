/**
 * The typed wrapper of note-unpublished.lua: tells a gateway through Redis which requests have
 * ended, while the worker cannot reach NATS.
 */
import { chunks } from "../../../chunks.js";
import type { RedisClient } from "../../../redis/connect.js";
import { defineScript, word } from "../../../redis/script.js";
import { unpublishedKey } from "../../keys.js";

const answers = ["noted"] as const;

const script = defineScript(new URL("./note-unpublished.lua", import.meta.url), (reply) => word(reply, answers), {
  keys: ["unpublished"],
  args: ["ttl", { requests: [] }],
});

/** After this time the gateway has looked by itself, or is gone. */
const KEPT_MS = 60_000;
/** Names per call, because Lua's unpack takes a few thousand values at most. */
const NAMES_AT_ONCE = 1_000;

/** @param names from `requestName` */
export async function noteUnpublished(redis: RedisClient, gateway: string, names: readonly string[]): Promise<void> {
  const limits = { bytes: Infinity, items: NAMES_AT_ONCE };
  const keys = { unpublished: unpublishedKey(gateway) };
  for (const requests of chunks(names, () => 0, limits)) await script(redis, keys, { ttl: KEPT_MS, requests });
}
