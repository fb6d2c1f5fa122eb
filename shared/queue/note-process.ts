/**
 * The list of gateways and jobs processes, for people who look. Nothing depends on the list, so a
 * killed process stays listed for some seconds. Workers say more of themselves (work/).
 */
import { createRequire } from "node:module";
import { hostname } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { z } from "zod";
import { timeAt } from "../redis/clock.js";
import type { RedisClient } from "../redis/connect.js";
import { defineScript } from "../redis/script.js";
import { delay } from "../retry.js";
import { registryKeys } from "./keys.js";

const schema = z.object({
  kind: z.enum(["gateway", "jobs"]),
  name: z.string(),
  host: z.string(),
  pid: z.number(),
  /** RFC 3339. */
  startedAt: z.string(),
  /** The address of its metrics, with the port. Absent if it shows none, as older processes do. */
  metrics: z.string().optional(),
  /** Of Baton. Absent in older processes, as the load is. */
  version: z.string().optional(),
  load: z
    .object({
      /** Of one CPU, since the note before; more than 1 if several threads compute. */
      cpuRatio: z.number(),
      /** The longest delay of the event loop since the note before. */
      eventLoopMs: z.number(),
      memoryBytes: z.number(),
    })
    .optional(),
});

export type ListedProcess = Readonly<z.infer<typeof schema>>;

const EVERY_MS = 5_000;
const KEPT_MS = 15_000;
/** Time between two measurements of the event loop, in ms. */
const RESOLUTION_MS = 20;
const NS_PER_MS = 1e6;
const script = defineScript(new URL("./note-process.lua", import.meta.url), () => undefined, {
  keys: ["processes"],
  args: ["process", "before", "forMs"],
});

/** Keeps this process listed until `signal` aborts. */
export async function listProcess(
  redis: RedisClient,
  { kind, name, metrics }: Pick<ListedProcess, "kind" | "name" | "metrics">,
  signal: AbortSignal,
): Promise<void> {
  const startedAt = new Date(performance.timeOrigin).toISOString();
  const { version } = createRequire(import.meta.url)("#package.json") as { version: string };
  const own: ListedProcess = { kind, name, host: hostname(), pid: process.pid, startedAt, metrics, version };
  const { processes } = registryKeys;
  const meter = new LoadMeter();
  let before = "";
  // If Redis is away, the next beat notes the process, and a text that Redis may have expires.
  const note = async (forMs: number) => {
    const text = forMs === 0 ? before : JSON.stringify({ ...own, load: meter.read() });
    await script(redis, { processes }, { process: text, before, forMs }).catch(() => undefined);
    before = text;
  };
  while (!signal.aborted) {
    await note(KEPT_MS);
    await delay(EVERY_MS, signal);
  }
  await note(0);
  meter.stop();
}

/** Measures what the process uses, from one reading to the next. */
class LoadMeter {
  readonly #loop = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  #cpu = process.cpuUsage();
  #at = performance.now();

  constructor() {
    this.#loop.enable();
  }

  read(): NonNullable<ListedProcess["load"]> {
    const now = performance.now();
    const { user, system } = process.cpuUsage(this.#cpu);
    const cpuRatio = (user + system) / 1_000 / Math.max(1, now - this.#at);
    // A timer of the monitor is late by its own interval.
    const eventLoopMs = Math.max(0, this.#loop.max / NS_PER_MS - RESOLUTION_MS);
    this.#cpu = process.cpuUsage();
    this.#at = now;
    this.#loop.reset();
    return { cpuRatio: rounded(cpuRatio), eventLoopMs: rounded(eventLoopMs), memoryBytes: process.memoryUsage.rss() };
  }

  stop(): void {
    this.#loop.disable();
  }
}

function rounded(value: number): number {
  return Number(value.toPrecision(3));
}

/**
 * Leaves out entries that no process of this version has written.
 * @throws the client's error if Redis does not answer
 */
export async function readProcesses(redis: RedisClient): Promise<ListedProcess[]> {
  const now = await timeAt(redis, registryKeys.processes);
  const found = await redis.zrangebyscore(registryKeys.processes, Math.ceil(now), "+inf");
  // A process may stand there twice, if Redis did not take one of its notes. The later one counts.
  const listed = new Map(found.flatMap((text) => parse(text) ?? []).map((one) => [one.name, one]));
  return [...listed.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function parse(text: string): ListedProcess | undefined {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
