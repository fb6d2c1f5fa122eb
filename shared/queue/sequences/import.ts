/** The typed wrapper of import.lua: makes a sequence from an export. */
import { decodeCheckpoint, encodeCheckpoint, nameRun } from "../../contract/checkpoint.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, word } from "../../redis/script.js";
import { pinText } from "../address.js";
import { modelTag, versionKey } from "../keys.js";
import { settingVersion, versionTtlMs } from "../pieces/version.js";
import type { SequenceAddress } from "./address.js";
import type { ExportedSequence } from "./export.js";
import { makingKeys, type SequenceTerms } from "./making.js";
import { onceArgs, type Once } from "./once.js";
import { viewOf, type SequenceView } from "./view.js";

export type Importing =
  | { readonly said: "imported"; readonly view: SequenceView }
  | { readonly said: "exists" | "too-many-sequences" | "too-many-of-tenant" | "mismatch" };

const script = defineScript(
  new URL("./import.lua", import.meta.url),
  (reply): Importing => {
    const [first, view] = list(reply);
    if (view !== undefined) return { said: word(first, ["imported"]), view: viewOf(view) };
    return { said: word(first, ["exists", "too-many-sequences", "too-many-of-tenant", "mismatch"]) };
  },
  {
    keys: ["sequences", "live", { others: [] }],
    args: [
      "base",
      "sequence",
      "pin",
      "step",
      "version",
      "idle",
      "kept",
      "most",
      "mostOfTenant",
      "record",
      "digest",
      "ttl",
    ],
    durable: true,
  },
);

/**
 * Gives the checkpoint a version of its own, so that repeated calls with the result import it once.
 * @throws InferenceError `state_corrupt` or `state_lost` if the checkpoint is not whole, or is not
 * the checkpoint that the export names
 */
export function stampForImport(exported: ExportedSequence): ExportedSequence {
  const { checkpoint } = exported;
  if (checkpoint === undefined) return exported;
  const { tensors } = decodeCheckpoint(checkpoint.frame, checkpoint.version);
  return { ...exported, checkpoint: encodeCheckpoint(nameRun("import"), tensors) };
}

/**
 * @param stamped from `stampForImport`
 * @returns Safe to repeat, and under `once` for ever. Without `once`, a repeated call for a
 * sequence without a checkpoint says `exists`.
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
  const args = {
    base: modelTag(sequence),
    sequence: sequence.name,
    pin: pinText(pin),
    step,
    version,
    idle: terms.maxIdleMs,
    kept: ttlMs,
    most: terms.liveSequences,
    mostOfTenant: terms.mostOfTenant ?? "",
    ...onceArgs(sequence, once),
  };
  return script(redis, makingKeys(redis, sequence, terms), args, ahead);
}
