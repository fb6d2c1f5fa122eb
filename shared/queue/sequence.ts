/** What is known of a sequence, as sequence.lua keeps it, read with a plain command. */
import type { Lane } from "./address.js";
import { sequencesKey } from "./keys.js";
import type { RedisClient } from "../redis/connect.js";

export interface SequenceFacts {
  /** Number of the last step that was admitted; steps are numbered over all STARTs. */
  readonly next: number;
  /** Number of the last step that has ended. */
  readonly done: number;
  /** Number of the last START. */
  readonly start: number;
  /** Whether it takes no step but a START: it has its END, or was deleted, or has failed. */
  readonly ended: boolean;
  /** Version of the checkpoint that it goes on from; "" for none, "!" where it has failed. */
  readonly at: string;
  /** The pin of its last START, as `pinText` has it. */
  readonly pin: string;
  /** Its entry in a ready stream, or `@` where that is parked; "" while it is idle. */
  readonly entry: string;
  /** The pin of the lane in which that entry is. */
  readonly on: string;
  /** Name of the request that has that entry. */
  readonly request: string;
  /** Redis ms at which it expires idle; 0 before it has been idle. */
  readonly lapses: number;
  /** Redis ms until which its checkpoints are kept at least. */
  readonly keptUntil: number;
  /** Its checkpoints where its model keeps several, oldest first: `<step>=<version>`. */
  readonly kept: readonly string[];
}

/**
 * @param names from `sequenceName`, of sequences of one model and bucket
 * @returns undefined for each that does not exist
 */
export async function readSequences(
  redis: RedisClient,
  lane: Pick<Lane, "bucket" | "model">,
  names: readonly string[],
): Promise<(SequenceFacts | undefined)[]> {
  if (names.length === 0) return [];
  const texts = await redis.hmget(sequencesKey(lane), ...names);
  return texts.map((text) => (text === null ? undefined : parseFacts(text)));
}

/** @param text the value of the sequence's field */
export function parseFacts(text: string): SequenceFacts {
  const [next, done, start, ended, at = "", pin = "", entry = "", on = "", request = "", lapses, keptUntil, kept = ""] =
    text.split("|");
  return {
    next: Number(next),
    done: Number(done),
    start: Number(start),
    ended: ended !== "0",
    at,
    pin,
    entry,
    on,
    request,
    lapses: Number(lapses),
    keptUntil: Number(keptUntil),
    kept: kept.split(" ").filter((item) => item !== ""),
  };
}
