/**
 * Sends calls to a server as a single command of ioredis: all calls are encoded into one buffer,
 * and one object with one timer takes all replies. ioredis keeps the connection, its timeouts and
 * the order of replies. This file alone needs parts of ioredis's inside, and
 * test/redis/send-calls.test.ts fails if a version of ioredis changes them.
 */
import type * as ioredis from "ioredis";
import { Command } from "./ioredis.js";
import type { Arg, Call, Result } from "./transaction.js";

/** The commands without a reply, in the order of their replies. */
interface Inside {
  readonly commandQueue: {
    unshift(item: { readonly command: ioredis.Command; readonly stream: undefined; readonly select: number }): unknown;
  };
  readonly condition?: { readonly select: number };
}

/** Several calls for ioredis, which counts them as one. */
class Calls extends Command {
  readonly #encoded: Buffer;
  readonly #results: Result[] = [];

  /** The promise of the command gives a `Result` for each call. */
  constructor(server: ioredis.Redis, calls: readonly Call[]) {
    // The name decides nothing: ioredis treats all commands alike that neither block nor subscribe.
    super("evalsha", [], { replyEncoding: null });
    this.#encoded = encodeCalls(calls);
    const inside = server as unknown as Inside;
    const { resolve, reject } = this;
    const results = this.#results;
    const note = (result: Result) => {
      // ioredis takes the first command of the queue for each reply, so this command stays there.
      const item = { command: this, stream: undefined, select: inside.condition?.select ?? 0 };
      if (results.push(result) < calls.length) inside.commandQueue.unshift(item);
      else resolve(results);
    };
    this.resolve = (reply: unknown) => note([null, reply]);
    this.reject = (error) => {
      if (error.name === "ReplyError") return note([error]);
      // The connection is lost, or the server is silent. An earlier error says more.
      reject(results.find(([earlier]) => earlier !== null)?.[0] ?? error);
    };
  }

  override toWritable(): Buffer {
    // A client that sends commands again gets all replies again.
    this.#results.length = 0;
    return this.#encoded;
  }
}

/**
 * @returns a result for each call, with Buffers for strings; undefined if the connection is not
 *   open, so that nothing was sent
 * @throws the client's error if the link is lost
 */
export function sendCalls(server: ioredis.Redis, calls: readonly Call[]): Promise<Result[]> | undefined {
  if (server.status !== "ready" || !server.stream.writable) return undefined;
  return server.sendCommand(new Calls(server, calls)) as Promise<Result[]>;
}

/** Encodes calls as Redis reads them: arrays of bulk strings (RESP). */
export function encodeCalls(calls: readonly Call[]): Buffer {
  const parts: (string | Buffer)[] = [];
  let bytes = 0;
  let text = "";
  const add = (arg: Arg) => {
    if (Buffer.isBuffer(arg)) {
      parts.push(`${text}$${arg.length}\r\n`, arg);
      bytes += arg.length;
      text = "\r\n";
      return;
    }
    const written = String(arg);
    const length = Buffer.byteLength(written);
    bytes += length - written.length;
    text += `$${length}\r\n${written}\r\n`;
  };
  for (const call of calls) {
    text += `*${call.length}\r\n`;
    for (const arg of call) add(arg);
  }
  parts.push(text);
  for (const part of parts) if (typeof part === "string") bytes += part.length;
  const encoded = Buffer.allocUnsafe(bytes);
  let at = 0;
  for (const part of parts) at += typeof part === "string" ? encoded.write(part, at) : part.copy(encoded, at);
  return encoded;
}
