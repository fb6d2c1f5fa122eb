/**
 * Whose commands they are, and how many bytes scripts are given: Redis' MONITOR tells both, at a
 * price. So nothing else is measured while it runs.
 */
import { connect } from "node:net";
import { createInterface } from "node:readline";
import type { Redis } from "ioredis";
import { isScript } from "./counters.js";

/** One command as MONITOR prints it. */
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
/** A byte that is no printable one is written as `\xHH` or as a letter after a backslash. */
const ESCAPED = /\\(?:x[0-9a-f]{2}|.)/g;

/** @returns undefined for a line that is no command */
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

/** Adds commands up, each to the client that has sent it or the script that called it. */
export class Tally {
  /** Calls by command, by the client's address. */
  readonly calls = new Map<string, Map<string, number>>();
  /** Bytes of the keys and arguments that scripts were given. */
  scriptBytes = 0;
  /** Who called the script that ran last. A script's commands follow its call at once. */
  #caller = "";

  add({ source, command, argumentBytes }: Monitored): void {
    if (isScript(command)) {
      this.#caller = source;
      // The first two say which script, and how many of the others are keys.
      for (const bytes of argumentBytes.slice(2)) this.scriptBytes += bytes;
    }
    const client = source === "lua" ? this.#caller : source;
    let counted = this.calls.get(client);
    if (counted === undefined) this.calls.set(client, (counted = new Map<string, number>()));
    counted.set(command, (counted.get(command) ?? 0) + 1);
  }
}

export interface Monitor {
  /** Ends it, and gives all that Redis has done up to now. */
  stop(): Promise<Tally>;
}

/** Where the server tells, all that was done before it is told by then. */
const END = "the-end-of-what-is-monitored";

/**
 * Resolves when the server has begun to tell.
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
 * @param clients what CLIENT LIST prints, a line per connection
 * @returns the connections' names by their addresses
 */
export function clientNames(clients: string): Map<string, string> {
  return new Map(
    Array.from(clients.matchAll(/ addr=(\S+) .*? name=(\S*) /g), ([, addr = "", name = ""]) => [addr, name]),
  );
}
