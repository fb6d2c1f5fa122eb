/**
 * The typed wrapper of fork.lua: makes a second sequence that continues from another sequence's
 * last or an earlier step. For a new sequence in another bucket, the caller exports the old
 * sequence and imports it as the new sequence.
 */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, text, word } from "../../redis/script.js";
import { modelTag } from "../keys.js";
import type { SequenceAddress } from "./address.js";
import { makingKeys, type SequenceTerms } from "./making.js";
import { onceArgs, type Once } from "./once.js";
import { viewOf, type SequenceView } from "./view.js";

export type Forking =
  /** The new sequence; or the old sequence, if there is no such checkpoint. */
  | { readonly said: "forked" | "busy" | "future" | "gone"; readonly view: SequenceView }
  /** The checkpoint of this version lies on disk, and the caller has to wake it first. */
  | { readonly said: "asleep"; readonly version: string }
  | { readonly said: "unknown" | "exists" | "too-many-sequences" | "too-many-of-tenant" | "mismatch" };

const script = defineScript(
  new URL("./fork.lua", import.meta.url),
  (reply): Forking => {
    const [first, view, version] = list(reply);
    if (version !== undefined) return { said: word(first, ["asleep"]), version: text(version) };
    if (view !== undefined) return { said: word(first, ["forked", "busy", "future", "gone"]), view: viewOf(view) };
    return { said: word(first, ["unknown", "exists", "too-many-sequences", "too-many-of-tenant", "mismatch"]) };
  },
  {
    keys: ["sequences", "live", { others: [] }],
    args: ["base", "sequence", "fork", "idle", "most", "mostOfTenant", "step", "record", "digest", "ttl"],
    durable: true,
  },
);

/**
 * @param name of the new sequence, which has the bucket of the old sequence
 * @param step counted from the START; undefined for the last step that has ended
 * @returns Safe to repeat until the new sequence has another step, and under `once` for ever.
 * Without `once`, a repeated call for a sequence without a checkpoint says `exists`.
 */
export function fork(
  redis: RedisClient,
  sequence: SequenceAddress,
  name: string,
  terms: SequenceTerms,
  step?: number,
  once?: Once,
): Promise<Forking> {
  return script(redis, makingKeys(redis, sequence, terms), {
    base: modelTag(sequence),
    sequence: sequence.name,
    fork: name,
    idle: terms.maxIdleMs,
    most: terms.liveSequences,
    mostOfTenant: terms.mostOfTenant ?? "",
    step: step ?? "",
    ...onceArgs(sequence, once),
  });
}
