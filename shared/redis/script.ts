/**
 * Builds the typed wrapper of a Lua script. The script's file lies beside its wrapper, and the
 * wrapper returns typed replies. If a server has forgotten its scripts (restart, SCRIPT FLUSH), the
 * call sends the source. Scripts that end admitted work, or give it back, carry the flag
 * `allow-oom`: a full Redis refuses new work, and only finished work frees memory.
 */
import { createHash } from "node:crypto";
import { basename } from "node:path";
import { readFileSync } from "node:fs";
import { cells, type Cell } from "../metrics/cells.js";
import { stopwatch } from "../metrics/stopwatch.js";
import { dropIfSilent, type RedisClient } from "./connect.js";
import { resolveRecords } from "../records/lua.js";
import { textOf as text } from "../records/record.js";
import { untilReplicated } from "./replicated.js";
import { flattener, resolveNames, type Named, type Names } from "./script-names.js";
import { ABSENT, absentKey } from "./slots.js";
import { inTransaction, lastReply, onlyReply, sendCall, sendTogether, type Arg, type Call } from "./transaction.js";

export type { Arg } from "./transaction.js";

export interface Script<Reply, K extends Names, A extends Names> {
  /**
   * @param ahead calls that run before the script, in the same transaction. If the server has
   *   forgotten the script, these calls run twice.
   */
  (redis: RedisClient, keys: Named<K, string>, args: Named<A, Arg>, ahead?: readonly Call[]): Promise<Reply>;
}

export interface ScriptTerms<K extends Names, A extends Names> {
  /** The names of its keys and arguments, as in the head of the script. */
  readonly keys: K;
  readonly args: A;
  /**
   * Whether the script accepts or ends work, or reads a value that a client will receive. In the
   * durability mode `replicated` such a call counts as done once a replica has all earlier writes
   * of the server. Absent: false.
   */
  readonly durable?: boolean;
  /**
   * Whether the script only reads, and also runs for users of Redis that may not write its keys
   * (`roles.ts`). Its file then has the flag `no-writes`. Absent: false.
   */
  readonly readsOnly?: boolean;
}

/**
 * @param file the script
 * @param decode makes the typed reply from bulk strings as Buffers, integers as numbers, and arrays
 * @returns a function that runs the script. It throws an UnconfirmedError if no replica has
 *   confirmed a durable call. The writes may be lost then, and the caller repeats the call.
 * @throws TypeError if the script and the terms name keys or arguments differently, or if the
 *   script names a field that no record has
 */
export function defineScript<Reply, const K extends Names, const A extends Names>(
  file: URL,
  decode: (reply: unknown) => Reply,
  { keys: keyNames, args: argNames, durable = false, readsOnly = false }: ScriptTerms<K, A>,
): Script<Reply, K, A> {
  const source = withoutAbsentKey(resolveNames(resolveRecords(sourceOf(file)), { KEYS: keyNames, ARGV: argNames }));
  const sha = createHash("sha1").update(source).digest("hex");
  // Redis wants the right to write each key that EVALSHA names.
  const [byDigest, byText] = readsOnly ? ["EVALSHA_RO", "EVAL_RO"] : ["EVALSHA", "EVAL"];
  const counts = new ScriptCounts(basename(file.pathname, ".lua"));
  const [flatKeys, flatArgs] = [flattener<string>(keyNames), flattener<Arg>(argNames)];
  return async (redis, keys, args, ahead = []) => {
    const named = flatKeys(keys);
    const [key = ""] = named;
    const waits = durable && redis.durability === "replicated";
    if (redis.isCluster && named.length > 0) named.push(absentKey(key));
    const since = stopwatch();
    const tail = [named.length, ...named, ...flatArgs(args)];
    try {
      return decode(await send(redis, key, ahead, [byDigest, sha, ...tail], waits));
    } catch (error) {
      dropIfSilent(redis, error);
      if (!isReplyError(error, "NOSCRIPT")) throw error;
      return decode(await send(redis, key, ahead, [byText, source, ...tail], waits));
    } finally {
      counts.called(stopwatch() - since);
    }
  };
}

/** The figures of a script. A script that this process never calls has none. */
class ScriptCounts {
  readonly #name: string;
  #cells: { readonly calls: Cell; readonly seconds: Cell } | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  called(ms: number): void {
    const labels = { call: this.#name };
    this.#cells ??= {
      calls: cells.counter("baton_redis_calls_total", labels),
      seconds: cells.counter("baton_redis_call_seconds_total", labels),
    };
    cells.add(this.#cells.calls);
    cells.add(this.#cells.seconds, ms / 1_000);
  }
}

/**
 * A script touches keys that its call does not name. While a slot moves to another master, key by
 * key, the script would find some keys and miss the others, at either master. So in a Cluster each
 * call names an absent key, which the script never sees. Both masters refuse the call until the
 * move ends, and the caller repeats it.
 */
function withoutAbsentKey(source: string): string {
  const forget = `if string.sub(KEYS[#KEYS] or '', 1, ${ABSENT.length}) == '${ABSENT}' then KEYS[#KEYS] = nil end`;
  return source.replace("\n", `\n${forget} `);
}

/**
 * A line `-- include ../version.lua` stands for that file, with a path relative to the including
 * file. Each file is included once, at the first such line.
 */
function sourceOf(file: URL, included = new Set<string>()): string {
  included.add(file.href);
  return readFileSync(file, "utf8").replaceAll(/^-- include (\S+)\n/gm, (_, path: string) => {
    const piece = new URL(path, file);
    return included.has(piece.href) ? "" : sourceOf(piece, included);
  });
}

async function send(
  redis: RedisClient,
  key: string,
  ahead: readonly Call[],
  call: Call,
  waits: boolean,
): Promise<unknown> {
  const isAlone = ahead.length === 0;
  if (isAlone && !waits) return sendCall(redis, call);
  const calls = isAlone ? [call] : inTransaction([...ahead, call]);
  const results = await (waits ? untilReplicated : sendTogether)(redis, key, calls);
  return isAlone ? onlyReply(results) : lastReply(results);
}

/** Whether the server itself answered with an error whose text starts with `code`. */
export function isReplyError(error: unknown, code: string): boolean {
  return error instanceof Error && error.name === "ReplyError" && error.message.startsWith(code);
}

/**
 * Decodes an array of words.
 * @param allowed the words that the script's head lists
 * @returns a decoder, which throws a TypeError for any other word
 */
export function words<const Word extends string>(allowed: readonly Word[]): (reply: unknown) => Word[] {
  return (reply) => list(reply).map((item) => word(item, allowed));
}

export { text };

/** @throws TypeError for a word that is not allowed */
export function word<const Word extends string>(reply: unknown, allowed: readonly Word[]): Word {
  const said = text(reply);
  const known = allowed.find((candidate) => candidate === said);
  if (known === undefined) throw new TypeError(`script answered ${JSON.stringify(said)}`);
  return known;
}

/** @throws TypeError for a reply that is no bulk string */
export function bytes(reply: unknown): Buffer {
  if (Buffer.isBuffer(reply)) return reply;
  throw new TypeError(`expected a bulk reply, got ${typeof reply}`);
}

/** @throws TypeError for a reply that is no array */
export function list(reply: unknown): unknown[] {
  if (Array.isArray(reply)) return reply as unknown[];
  throw new TypeError(`expected an array reply, got ${typeof reply}`);
}

/** @throws TypeError for a reply that is no safe integer, as number or text */
export function integer(reply: unknown): number {
  const value = typeof reply === "number" ? reply : Number(text(reply));
  if (!Number.isSafeInteger(value)) throw new TypeError("expected an integer reply");
  return value;
}
