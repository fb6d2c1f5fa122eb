/**
 * The typed wrapper of fork.lua: makes a second sequence that goes on from where one stands, or
 * stood. Where the new one's bucket is another one, the caller exports the old one and imports it
 * as the new one.
 */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, text, word } from "../../redis/script.js";
import { modelTag } from "../keys.js";
import type { SequenceAddress } from "./address.js";
import { makingKeys, type SequenceTerms } from "./making.js";
import { onceArgs, type Once } from "./once.js";
import { viewOf, type SequenceView } from "./view.js";

export type Forking =
  /** The new sequence, or where there is no such checkpoint, the old one. */
  | { readonly said: "forked" | "busy" | "future" | "gone"; readonly view: SequenceView }
  /** The checkpoint of this version lies on disk, and is to be woken first. */
  | { readonly said: "asleep"; readonly version: string }
  | { readonly said: "unknown" | "exists" | "too-many-sequences" | "mismatch" };

const script = defineScript(
  new URL("./fork.lua", import.meta.url),
  (reply): Forking => {
    const [first, view, version] = list(reply);
    if (version !== undefined) return { said: word(first, ["asleep"]), version: text(version) };
    if (view !== undefined) return { said: word(first, ["forked", "busy", "future", "gone"]), view: viewOf(view) };
    return { said: word(first, ["unknown", "exists", "too-many-sequences", "mismatch"]) };
  },
  { durable: true },
);

/**
 * @param name of the new sequence, whose bucket is that of the old one
 * @param step counted from the START; undefined stands for the last one that has ended
 * @returns Safe to repeat until the new one has another step, and under `once` for ever; without
 * that, a repeated call for a sequence that has no checkpoint yet says `exists`.
 */
export function fork(
  redis: RedisClient,
  sequence: SequenceAddress,
  name: string,
  terms: SequenceTerms,
  step?: number,
  once?: Once,
): Promise<Forking> {
  const names = [modelTag(sequence), sequence.name, name];
  const args = [...names, terms.maxIdleMs, terms.liveSequences, step ?? "", ...onceArgs(sequence, once)];
  return script(redis, makingKeys(redis, sequence, terms), args);
}
