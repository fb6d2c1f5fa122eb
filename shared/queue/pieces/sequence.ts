/** The facts of a sequence, which sequence.lua keeps, read with a plain command. */
import type { Lane } from "../address.js";
import { sequencesKey } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";

export interface SequenceFacts {
  /** Number of the last admitted step; the numbers run over all STARTs. */
  readonly next: number;
  /** Number of the last step that has ended. */
  readonly done: number;
  /** Number of the last START. */
  readonly start: number;
  /**
   * Whether only a START is possible: a step had END, a client deleted the sequence, or a step
   * failed.
   */
  readonly ended: boolean;
  /**
   * Version of the checkpoint from which the next step continues; "" for none, "!" after a failure.
   */
  readonly at: string;
  /** The pin of the sequence's last START, as `pinText` writes it. */
  readonly pin: string;
  /**
   * The sequence's entry in a ready stream, `@` for a parked step, "" while the sequence is idle.
   */
  readonly entry: string;
  /** The pin of that entry's lane. */
  readonly on: string;
  /** Name of that entry's request. */
  readonly request: string;
  /** Redis ms at which the sequence expires idle; 0 before the first idle time. */
  readonly lapses: number;
  /** Redis ms until which the checkpoints live at least. */
  readonly keptUntil: number;
  /** The checkpoints of a model that keeps several, oldest first: `<step>=<version>`. */
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
