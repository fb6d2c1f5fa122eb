/**
 * Reads from Redis' MONITOR which client sent which command, and the bytes that scripts get.
 * MONITOR costs CPU, so no other measurement runs meanwhile.
 */
import { connect } from "node:net";
import { createInterface } from "node:readline";
import type { Redis } from "ioredis";
import { isScript } from "./counters.js";

/** A command as MONITOR prints it. */
export interface Monitored {
  /** The client's address; `lua` for a command of a script. */
  readonly source: string;
  /** In lower case. */
  readonly command: string;
  /** Lengths of the arguments, in bytes. */
  readonly argumentBytes: readonly number[];
}

const LINE = /^\+?\d+\.\d+ \[\d+ ([^\]]+)\] (".*)$/;
const WORD = /"((?:[^"\\]|\\.)*)"/g;
/** MONITOR writes an unprintable byte as `\xHH` or as a letter after a backslash. */
const ESCAPED = /\\(?:x[0-9a-f]{2}|.)/g;

/** @returns undefined for a line without a command */
export function monitored(line: string): Monitored | undefined {
  const [, source, rest] = LINE.exec(line) ?? [];
  if (source === undefined || rest === undefined) return undefined;
  const words = Array.from(rest.matchAll(WORD), ([, word = ""]) => word);
  const [command = "", ...given] = words;
  return {
    source,
    command: command.toLowerCase(),
    argumentBytes: given.map((word) => word.replaceAll(ESCAPED, ".").length),
  };
}

/** Counts commands for the client that sent them or that called their script. */
export class Tally {
  /** Calls by command, by the client's address. */
  readonly calls = new Map<string, Map<string, number>>();
  /** Bytes of the keys and arguments of scripts. */
  scriptBytes = 0;
  /** The client that called the last script. A script's commands follow its call at once. */
  #caller = "";

  add({ source, command, argumentBytes }: Monitored): void {
    if (isScript(command)) {
      this.#caller = source;
      // The first two arguments name the script, and the number of keys.
      for (const bytes of argumentBytes.slice(2)) this.scriptBytes += bytes;
    }
    const client = source === "lua" ? this.#caller : source;
    let counted = this.calls.get(client);
    if (counted === undefined) this.calls.set(client, (counted = new Map<string, number>()));
    counted.set(command, (counted.get(command) ?? 0) + 1);
  }
}

export interface Monitor {
  /** Ends the monitor, and returns all commands that Redis has run up to now. */
  stop(): Promise<Tally>;
}

/** An ECHO with this text marks the end: all earlier commands come before it in the output. */
const END = "the-end-of-what-is-monitored";

/**
 * Resolves as soon as the server reports commands.
 * @param redis another connection to the same server
 */
export function openMonitor({ port, redis }: { readonly port: number; readonly redis: Redis }): Promise<Monitor> {
  return new Promise((resolve, reject) => {
    const tally = new Tally();
    const socket = connect({ port, host: "127.0.0.1" }, () => socket.write("MONITOR\r\n"));
    socket.once("error", reject);
    let ended: () => void = () => undefined;
    const stop = async () => {
      const told = new Promise<void>((resolve) => (ended = resolve));
      await redis.echo(END);
      await told;
      socket.destroy();
      return tally;
    };
    createInterface({ input: socket }).on("line", (line) => {
      if (line === "+OK") return resolve({ stop });
      if (line.endsWith(`"${END}"`)) return ended();
      const one = monitored(line);
      if (one !== undefined) tally.add(one);
    });
  });
}

/**
 * @param clients output of CLIENT LIST, a line per connection
 * @returns the connections' names by their addresses
 */
export function clientNames(clients: string): Map<string, string> {
  return new Map(
    Array.from(clients.matchAll(/ addr=(\S+) .*? name=(\S*) /g), ([, addr = "", name = ""]) => [addr, name]),
  );
}
