/**
 * Redis' own counters: how many times each command ran, inside scripts, too, and how much CPU and
 * memory Redis used. The counts are exact, however busy the machine is; only CPU time varies with
 * the load.
 */
import type { Redis } from "ioredis";

/** Redis' counters since its start. */
export interface Counters {
  /** Time of the reading, in ms on the clock of `performance.now()`. */
  readonly at: number;
  /** Calls by command. A script's own commands count beside the script's call. */
  readonly calls: ReadonlyMap<string, number>;
  /** User and system time of all threads of the server, in ms. */
  readonly cpuMs: number;
  /** The main thread's part of that time, in ms. */
  readonly mainThreadMs: number;
  /** Bytes that clients have sent. */
  readonly inputBytes: number;
  /** Size of the append-only file; undefined without a file. */
  readonly fileBytes: number | undefined;
  readonly memoryBytes: number;
  /** Connections, the caller's included. */
  readonly clients: number;
}

/** The difference between two readings of Redis' counters. */
export interface Spent extends Pick<Counters, "calls" | "cpuMs" | "mainThreadMs" | "inputBytes"> {
  readonly seconds: number;
  /** Bytes that Redis appended to the append-only file; NaN without a file. */
  readonly fileBytes: number;
}

/**
 * Resolves with Redis' counters. The INFO call itself counts, too, and `spentBetween` leaves INFO
 * out.
 */
export async function readCounters(redis: Redis): Promise<Counters> {
  return countersIn(await redis.info("all"), performance.now());
}

/** Stops rewrites of the append-only file, because a rewrite would spoil the measured growth. */
export async function keepAppending(redis: Redis): Promise<void> {
  await redis.config("SET", "auto-aof-rewrite-percentage", "0");
}

const COMMAND = /^cmdstat_([^:]+):calls=(\d+),/;

/**
 * @param info output of INFO ALL
 * @throws Error that names a missing number
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

/**
 * The benchmark's own commands during a measurement. Processes of Baton send these only at their
 * start.
 */
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

/** Percent of a core that Redis has used. */
export function cpuPercent({ cpuMs, seconds }: Pick<Spent, "cpuMs" | "seconds">): number {
  return cpuMs / seconds / 10;
}

/** Commands that only hold other commands, which count by themselves. */
const HOLDING = new Set(["eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro", "multi", "exec"]);

/** How many commands ran in all, calls of scripts included. */
export function allCalls(calls: ReadonlyMap<string, number>): number {
  return sum(calls.values());
}

/** The same without the calls of scripts and transactions: the work, and not its wrapping. */
export function innerCalls(calls: ReadonlyMap<string, number>): number {
  return sum([...calls].filter(([command]) => !HOLDING.has(command)).map(([, count]) => count));
}

/** Whether a command is the call of a script. */
export function isScript(command: string): boolean {
  return /^(?:eval|fcall)/.test(command);
}

/**
 * Calls per command as text, the most frequent first.
 * @param per divisor: steps, tokens or seconds
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
