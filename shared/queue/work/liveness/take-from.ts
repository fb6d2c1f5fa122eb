/** The typed wrapper of take-from.lua: takes over entries of a gone worker. */
import { GROUP, laneKeys } from "../../keys.js";
import { defineScript, integer, isReplyError, list, text, word } from "../../../redis/script.js";
import type { LaneQueue } from "../lane.js";
import { entries, type Taken } from "../stream.js";

const answers = ["more", "empty", "late"] as const;

export interface TakenFrom extends Taken {
  /** `empty`: the other worker has nothing left in this lane; `late`: the script took nothing. */
  readonly said: (typeof answers)[number];
  /** Entries that a person deleted while the other worker owned them. */
  readonly deleted: string[];
  /** By entry: to how many workers Redis has given it, the caller included. */
  readonly times: ReadonlyMap<string, number>;
}

const script = defineScript(new URL("./take-from.lua", import.meta.url), list, {
  keys: ["ready"],
  args: ["group", "consumer", "other", "most", "notAfter"],
});

/**
 * @param other the worker whose entries the caller takes
 * @param count the most entries to take
 * @param notAfter Redis time in ms: a call that arrives later takes nothing
 */
export async function takeFrom(
  { redis, lane, consumer }: LaneQueue,
  other: string,
  count: number,
  notAfter = Number.MAX_SAFE_INTEGER,
): Promise<TakenFrom> {
  try {
    const args = { group: GROUP, consumer, other, most: count, notAfter };
    const [said, found, deleted, counts] = await script(redis, laneKeys(lane), args);
    const taken = list(found);
    const times = new Map(list(counts).map((count, i) => [text(list(taken[i])[0]), integer(count)]));
    return { said: word(said, answers), deleted: list(deleted).map(text), times, ...entries(lane, taken) };
  } catch (error) {
    // Redis came back empty: the lane's stream is gone, with its entries.
    if (!isReplyError(error, "NOGROUP")) throw error;
    return { said: "empty", deliveries: [], unreadable: [], deleted: [], times: new Map() };
  }
}
