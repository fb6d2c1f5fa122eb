/** The typed wrapper of import.lua: makes a sequence from what was exported of one. */
import { decodeCheckpoint, encodeCheckpoint, nameRun } from "../../contract/checkpoint.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, word } from "../../redis/script.js";
import { pinText } from "../address.js";
import { modelTag, versionKey } from "../keys.js";
import { settingVersion, versionTtlMs } from "../version.js";
import type { SequenceAddress } from "./address.js";
import type { ExportedSequence } from "./export.js";
import { makingKeys, type SequenceTerms } from "./making.js";
import { onceArgs, type Once } from "./once.js";
import { viewOf, type SequenceView } from "./view.js";

export type Importing =
  | { readonly said: "imported"; readonly view: SequenceView }
  | { readonly said: "exists" | "too-many-sequences" | "mismatch" };

const script = defineScript(
  new URL("./import.lua", import.meta.url),
  (reply): Importing => {
    const [first, view] = list(reply);
    if (view !== undefined) return { said: word(first, ["imported"]), view: viewOf(view) };
    return { said: word(first, ["exists", "too-many-sequences", "mismatch"]) };
  },
  { durable: true },
);

/**
 * Gives the checkpoint a version of its own. What this returns is imported once, however often the
 * call is made.
 * @throws InferenceError `state_corrupt` or `state_lost` for a checkpoint that is not whole, or is
 * not the one that the export names
 */
export function stampForImport(exported: ExportedSequence): ExportedSequence {
  const { checkpoint } = exported;
  if (checkpoint === undefined) return exported;
  const { tensors } = decodeCheckpoint(checkpoint.frame, checkpoint.version);
  return { ...exported, checkpoint: encodeCheckpoint(nameRun("import"), tensors) };
}

/**
 * @param stamped from `stampForImport`
 * @returns Safe to repeat, and under `once` for ever. Without that, a repeated call for a sequence
 * that has no checkpoint yet says `exists`.
 */
export function importSequence(
  redis: RedisClient,
  sequence: SequenceAddress,
  { step, pin, checkpoint }: ExportedSequence,
  terms: SequenceTerms,
  once?: Once,
): Promise<Importing> {
  const ttlMs = versionTtlMs(terms.maxIdleMs);
  const version = checkpoint?.version ?? "";
  const ahead =
    checkpoint === undefined
      ? []
      : [settingVersion({ key: versionKey(sequence, sequence.name, version), checkpoint: checkpoint.frame, ttlMs })];
  const facts = [modelTag(sequence), sequence.name, pinText(pin), step, version];
  const args = [...facts, terms.maxIdleMs, ttlMs, terms.liveSequences, ...onceArgs(sequence, once)];
  return script(redis, makingKeys(redis, sequence, terms), args, ahead);
}
