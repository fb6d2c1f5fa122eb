/**
 * The layout of a store after a recording: a line for each kind of key with its type and for each
 * field, with `w` in the place of each word. A change of the bytes that the next version must read
 * shows as another line.
 */
import { isUtf8 } from "node:buffer";
import type { Redis } from "ioredis";

/** Keys that come and go by the clock, or whose presence depends on the speed of the machine. */
const PASSING = /^(?:calls|claim|lock|bull|recount|reconciler):/;

/** @returns lines in the order of their texts, each once */
export async function layoutOf(redis: Redis): Promise<string[]> {
  const lines = new Set<string>();
  for (const key of await redis.keys("*")) {
    if (PASSING.test(key)) continue;
    const type = await redis.type(key);
    for (const part of partsOf(type, await contentOf(redis, key, type))) {
      lines.add(`${kindOf(key)} ${type} ${part}`);
    }
  }
  return [...lines].toSorted();
}

/** The first word of a key is its kind. */
function kindOf(key: string): string {
  const end = key.indexOf(":");
  return end === -1 ? key : key.slice(0, end) + wordsLeftOut(key.slice(end));
}

type Entries = readonly (readonly [Buffer, readonly Buffer[]])[];
type Content = Buffer | readonly Buffer[] | Entries;

function contentOf(redis: Redis, key: string, type: string): Promise<Content> {
  const commands: Readonly<Record<string, readonly string[]>> = {
    string: ["GET", key],
    hash: ["HGETALL", key],
    list: ["LRANGE", key, "0", "-1"],
    set: ["SMEMBERS", key],
    zset: ["ZRANGE", key, "0", "-1"],
    stream: ["XRANGE", key, "-", "+"],
  };
  const [command = "TYPE", ...args] = commands[type] ?? [];
  return redis.callBuffer(command, ...args) as Promise<Content>;
}

/** Each field of a hash or of an entry of a stream is a part, and so is each other member. */
function partsOf(type: string, content: Content): string[] {
  if (Buffer.isBuffer(content)) return [skeletonOf(content)];
  if (type === "stream") return (content as Entries).flatMap(([, pairs]) => fields(pairs));
  return type === "hash" ? fields(content as readonly Buffer[]) : (content as readonly Buffer[]).map(skeletonOf);
}

function fields(pairs: readonly Buffer[]): string[] {
  return pairs.flatMap((name, i) =>
    i % 2 === 0 ? [`${nameOf(name.toString())} = ${skeletonOf(pairs[i + 1] ?? Buffer.alloc(0))}`] : [],
  );
}

/** A field is a word of the record, or else it is made of ids. */
const nameOf = (text: string) => (/^[a-zA-Z]+$/.test(text) ? text : wordsLeftOut(text));

/** Bytes and JSON are named as such, because their own tests hold their layout. */
function skeletonOf(bytes: Buffer): string {
  const text = bytes.toString();
  if (!isUtf8(bytes) || /\p{Cc}/u.test(text)) return "bytes";
  return /^[[{]/.test(text) ? "JSON" : wordsLeftOut(text);
}

function wordsLeftOut(text: string): string {
  return text.replace(/[\p{L}\d_.,@=-]+/gu, "w");
}
