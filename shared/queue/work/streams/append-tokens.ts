/**
 * The typed wrapper of append-tokens.lua: writes tokens to their streams' logs. Every token passes
 * through here before a client sees it.
 */
import { requestName, type RequestInBucket } from "../../address.js";
import { inCalls } from "../../calls.js";
import { GROUP } from "../../keys.js";
import { defineScript, words } from "../../../redis/script.js";
import { chunks } from "../../../chunks.js";
import { laneTable, type Located, type WorkerQueue } from "../lane.js";

export interface Append extends RequestInBucket, Located {
  /** Index of the first of `records`. */
  readonly first: number;
  /** JSON of token records; at least one. */
  readonly records: readonly (Buffer | string)[];
  /** Whether the last of `records` is the stream's final record. */
  readonly final: boolean;
  /** With the final record, the text of the request's timings; absent if there are none. */
  readonly note?: string | undefined;
  /**
   * Whether a recent append has found that a client wants the stream, so that this append need not
   * look. The script still finds every other reason to stop.
   */
  readonly seen?: boolean;
}

/** How the script treats an append, as the head of the script says. */
const [LOOK, FINAL, SEEN] = [0, 1, 2];

const answers = ["appended", "lost", "ended", "unwanted", "gap"] as const;
export type Appended = (typeof answers)[number];

const script = defineScript(new URL("./append-tokens.lua", import.meta.url), words(answers), {
  keys: [{ ready: [] }],
  args: [
    "group",
    "consumer",
    "heed",
    { lanes: ["base", "oldest", "newest"] },
    { requests: ["lane", "entry", "name", "first", "what", "records..."] },
  ],
  durable: true,
});

/**
 * Most bytes and requests of a call; a single larger request goes alone. A longer call would delay
 * the heartbeats of all workers.
 */
const PER_CALL = { bytes: 524_288, items: 256 };

/**
 * Safe to repeat with the same records: records of an earlier call read as `appended`.
 * @param heedWanted false while gateways may have been unable to renew `wanted`
 * @returns a word for each append, in order
 */
export async function appendTokens(
  queue: WorkerQueue,
  appends: readonly Append[],
  { heedWanted } = { heedWanted: true },
): Promise<Appended[]> {
  const append = (some: readonly Append[]) => appendSome(queue, some, heedWanted);
  const calls = chunks(appends, writtenBytes, PER_CALL).map((chunk) =>
    inCalls(queue.redis, chunk, ({ lane }) => lane.bucket, append),
  );
  return (await Promise.all(calls)).flat();
}

function appendSome(
  { redis, consumer }: WorkerQueue,
  appends: readonly Append[],
  heedWanted: boolean,
): Promise<Appended[]> {
  const { lanes, ready, numberOf } = laneTable(redis, appends);
  const requests = appends.map((append) => {
    const { lane, entry, first, records, final, note = "", seen = false } = append;
    const what = final ? `${FINAL}${note}` : seen ? SEEN : LOOK;
    return { lane: numberOf(lane), entry, name: requestName(append), first, what, records };
  });
  return script(redis, { ready }, { group: GROUP, consumer, heed: heedWanted ? 1 : 0, lanes, requests });
}

function writtenBytes({ records }: Append): number {
  return records.reduce((sum, record) => sum + Buffer.byteLength(record), 0);
}
