/**
 * What Redis says of itself: how often each command was called, inside of scripts, too, and what it
 * has spent. Exact numbers, however busy the machine is; CPU time alone varies with it.
 */
import type { Redis } from "ioredis";

/** What Redis has counted since its start. */
export interface Counters {
  /** When it was asked, in ms on `performance.now()`'s clock. */
  readonly at: number;
  /** Calls by command. A script's own commands count beside the script's call. */
  readonly calls: ReadonlyMap<string, number>;
  /** User and system time of the server, all of its threads, in ms. */
  readonly cpuMs: number;
  /** The part of it that the main thread has spent, in ms. */
  readonly mainThreadMs: number;
  /** Bytes that clients have sent. */
  readonly inputBytes: number;
  /** Size of the append-only file; undefined without one. */
  readonly fileBytes: number | undefined;
  readonly memoryBytes: number;
  /** Connections, that of the caller included. */
  readonly clients: number;
}

/** What Redis has counted between two readings. */
export interface Spent extends Pick<Counters, "calls" | "cpuMs" | "mainThreadMs" | "inputBytes"> {
  readonly seconds: number;
  /** What was appended to the append-only file; NaN without one. */
  readonly fileBytes: number;
}

/** Resolves with what Redis has counted. Its own call is counted, too, and left out afterwards. */
export async function readCounters(redis: Redis): Promise<Counters> {
  return countersIn(await redis.info("all"), performance.now());
}

/** The append-only file must not be rewritten while its growth is measured. */
export async function keepAppending(redis: Redis): Promise<void> {
  await redis.config("SET", "auto-aof-rewrite-percentage", "0");
}

const COMMAND = /^cmdstat_([^:]+):calls=(\d+),/;

/**
 * @param info what INFO ALL prints
 * @throws Error that names a number which is not there
 */
export function countersIn(info: string, at: number): Counters {
  const lines = info.split("\r\n");
  const fields = new Map(lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]));
  const number = (name: string) => {
    const value = Number(fields.get(name) ?? Number.NaN);
    if (Number.isNaN(value)) throw new Error(`Redis says no ${name}`);
    return value;
  };
  const calls = new Map<string, number>();
  for (const line of lines) {
    const [, command, count] = COMMAND.exec(line) ?? [];
    if (command !== undefined) calls.set(command, Number(count));
  }
  return {
    at,
    calls,
    cpuMs: (number("used_cpu_user") + number("used_cpu_sys")) * 1_000,
    mainThreadMs: (number("used_cpu_user_main_thread") + number("used_cpu_sys_main_thread")) * 1_000,
    inputBytes: number("total_net_input_bytes"),
    fileBytes: fields.has("aof_current_size") ? number("aof_current_size") : undefined,
    memoryBytes: number("used_memory"),
    clients: number("connected_clients"),
  };
}

/** What the benchmark itself asks while it measures. No part of Baton asks it but at its start. */
const OWN = new Set(["info", "dbsize"]);

export function spentBetween(from: Counters, to: Counters): Spent {
  const calls = new Map<string, number>();
  for (const [command, count] of to.calls) {
    const more = count - (from.calls.get(command) ?? 0);
    if (more > 0 && !OWN.has(command)) calls.set(command, more);
  }
  return {
    seconds: (to.at - from.at) / 1_000,
    calls,
    cpuMs: to.cpuMs - from.cpuMs,
    mainThreadMs: to.mainThreadMs - from.mainThreadMs,
    inputBytes: to.inputBytes - from.inputBytes,
    fileBytes: (to.fileBytes ?? Number.NaN) - (from.fileBytes ?? Number.NaN),
  };
}

/** Percent of one core that Redis has used. */
export function cpuPercent({ cpuMs, seconds }: Pick<Spent, "cpuMs" | "seconds">): number {
  return cpuMs / seconds / 10;
}

/** Commands that only hold others. What they hold is counted by itself. */
const HOLDING = new Set(["eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro", "multi", "exec"]);

/** How many commands were called: all of them, the calls of scripts included. */
export function allCalls(calls: ReadonlyMap<string, number>): number {
  return sum(calls.values());
}

/** The same without the calls of scripts and transactions: what was done, and not its wrapping. */
export function innerCalls(calls: ReadonlyMap<string, number>): number {
  return sum([...calls].filter(([command]) => !HOLDING.has(command)).map(([, count]) => count));
}

/** Whether a command is the call of a script. */
export function isScript(command: string): boolean {
  return /^(?:eval|fcall)/.test(command);
}

/**
 * Calls per command as text, the most frequent first.
 * @param per what they are divided by: steps, tokens or seconds
 */
export function describeCalls(calls: ReadonlyMap<string, number>, per: number): string {
  return [...calls]
    .sort(([, a], [, b]) => b - a)
    .map(([command, count]) => [command, (count / per).toFixed(2)] as const)
    .filter(([, each]) => each !== "0.00")
    .map(([command, each]) => `${command} ${each}`)
    .join(", ");
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
