/**
 * A Lua script and its typed wrapper: the script's file lies beside the wrapper, and raw replies turn into words before they leave
 * it. A server that has forgotten its scripts (restart, SCRIPT FLUSH) is taught again inside the call. Scripts that end or hand back
 * work that was admitted carry `allow-oom`: a full Redis refuses new work, and only finishing what it has makes it emptier.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dropIfSilent, type RedisClient } from "./connect.js";

export type Arg = string | number | Buffer;

export interface Script<Reply> {
  (redis: RedisClient, keys: readonly string[], args: readonly Arg[]): Promise<Reply>;
}

/** @param decode receives bulk strings as Buffers, integers as numbers, arrays as arrays. */
export function defineScript<Reply>(file: URL, decode: (reply: unknown) => Reply): Script<Reply> {
  const source = readFileSync(file, "utf8");
  const sha = createHash("sha1").update(source).digest("hex");
  return async (redis, keys, args) => {
    const tail = [keys.length, ...keys, ...args];
    try {
      return decode(await redis.callBuffer("EVALSHA", [sha, ...tail]));
    } catch (error) {
      dropIfSilent(redis, error);
      if (!isReplyError(error, "NOSCRIPT")) throw error;
      return decode(await redis.callBuffer("EVAL", [source, ...tail]));
    }
  };
}

/** True for an error that the server itself answered, starting with `code`. */
export function isReplyError(error: unknown, code: string): boolean {
  return error instanceof Error && error.name === "ReplyError" && error.message.startsWith(code);
}

/** Decodes an array of words, refusing any that the script's head does not list. */
export function words<const Word extends string>(allowed: readonly Word[]): (reply: unknown) => Word[] {
  return (reply) => list(reply).map((item) => word(item, allowed));
}

export function word<const Word extends string>(reply: unknown, allowed: readonly Word[]): Word {
  const said = text(reply);
  const known = allowed.find((candidate) => candidate === said);
  if (known === undefined) throw new TypeError(`script answered ${JSON.stringify(said)}`);
  return known;
}

export function text(reply: unknown): string {
  if (Buffer.isBuffer(reply)) return reply.toString("utf8");
  if (typeof reply === "string") return reply;
  if (typeof reply === "number") return String(reply);
  throw new TypeError(`expected a string reply, got ${typeof reply}`);
}

export function bytes(reply: unknown): Buffer {
  if (Buffer.isBuffer(reply)) return reply;
  throw new TypeError(`expected a bulk reply, got ${typeof reply}`);
}

export function list(reply: unknown): unknown[] {
  if (Array.isArray(reply)) return reply as unknown[];
  throw new TypeError(`expected an array reply, got ${typeof reply}`);
}

export function integer(reply: unknown): number {
  const value = typeof reply === "number" ? reply : Number(text(reply));
  if (!Number.isSafeInteger(value)) throw new TypeError("expected an integer reply");
  return value;
}
