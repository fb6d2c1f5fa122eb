/**
 * Reads the state of a sequence after its last or an earlier step, to make another sequence from
 * it.
 */
import type { RedisClient } from "../../redis/connect.js";
import type { Pin } from "../address.js";
import { versionKey } from "../keys.js";
import type { SequenceAddress } from "./address.js";
import { describeSequence, type Describing } from "./describe.js";

/** A sequence in a form that a client can keep anywhere, and import again. */
export interface ExportedSequence {
  /** Number of its last step, counted from its START. */
  readonly step: number;
  readonly pin: Pin;
  /** Undefined if the sequence continues from its initial state. */
  readonly checkpoint: { readonly version: string; readonly frame: Buffer } | undefined;
}

export type Exporting =
  { readonly said: "exported"; readonly sequence: ExportedSequence } | Exclude<Describing, { readonly said: "kept" }>;

/** Between the two reads the sequence may have a new step, and Redis may drop the checkpoint. */
const TRIES = 3;
/** A larger checkpoint travels over the connection for large data. */
export const LARGE_STATE_BYTES = 1024 * 1024;

/**
 * Reads the checkpoint by itself, because states can be large, and a checkpoint never changes.
 * @param step counted from the START; undefined for the last step that has ended
 * @param forLarge a connection for large checkpoints, so that other calls do not wait for their
 * bytes
 */
export async function exportSequence(
  redis: RedisClient,
  sequence: SequenceAddress,
  step?: number,
  forLarge = redis,
): Promise<Exporting> {
  for (let tries = 1; ; tries++) {
    const found = await describeSequence(redis, sequence, step);
    if (found.said !== "kept") return found;
    const { version, view } = found;
    const exported = { step: found.step, pin: view.pin };
    if (version === "") return { said: "exported", sequence: { ...exported, checkpoint: undefined } };
    const key = versionKey(sequence, sequence.name, version);
    const isLarge = forLarge !== redis && (await redis.strlen(key)) > LARGE_STATE_BYTES;
    const frame = await (isLarge ? forLarge : redis).getBuffer(key);
    if (frame !== null) return { said: "exported", sequence: { ...exported, checkpoint: { version, frame } } };
    if (tries === TRIES) return { said: "gone", view };
  }
}
