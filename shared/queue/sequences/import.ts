/** The typed wrapper of import.lua: makes a sequence from what was exported of one. */
import { decodeCheckpoint, encodeCheckpoint, nameRun } from "../../contract/checkpoint.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { pinText } from "../address.js";
import { modelTag, versionKey } from "../keys.js";
import { settingVersion, versionTtlMs } from "../version.js";
import { keysOf, type SequenceAddress, type SequenceTerms } from "./address.js";
import type { ExportedSequence } from "./export.js";

const answers = ["imported", "exists", "too-many-sequences"] as const;
export type Importing = (typeof answers)[number];

const script = defineScript(new URL("./import.lua", import.meta.url), (reply) => word(reply, answers), {
  durable: true,
});

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
 * @returns Safe to repeat. Of a sequence that has no checkpoint yet, a repeated call says `exists`.
 */
export function importSequence(
  redis: RedisClient,
  sequence: SequenceAddress,
  { step, pin, checkpoint }: ExportedSequence,
  { maxIdleMs, liveSequences }: SequenceTerms,
): Promise<Importing> {
  const { seqs, live } = keysOf(sequence);
  const ttlMs = versionTtlMs(maxIdleMs);
  const version = checkpoint?.version ?? "";
  const ahead =
    checkpoint === undefined
      ? []
      : [settingVersion({ key: versionKey(sequence, sequence.name, version), checkpoint: checkpoint.frame, ttlMs })];
  const facts = [modelTag(sequence), sequence.name, pinText(pin), step, version];
  return script(redis, [seqs, live], [...facts, maxIdleMs, ttlMs, liveSequences], ahead);
}
