/**
 * The list of gateways and jobs processes, for people who look. Nothing depends on the list, so a
 * killed process stays listed for some seconds. Workers say more of themselves (work/).
 */
import { hostname } from "node:os";
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
});

export type ListedProcess = Readonly<z.infer<typeof schema>>;

const EVERY_MS = 5_000;
const KEPT_MS = 15_000;
const script = defineScript(new URL("./note-process.lua", import.meta.url), () => undefined, {
  keys: ["processes"],
  args: ["process", "forMs"],
});

/** Keeps this process listed until `signal` aborts. */
export async function listProcess(
  redis: RedisClient,
  { kind, name, metrics }: Pick<ListedProcess, "kind" | "name" | "metrics">,
  signal: AbortSignal,
): Promise<void> {
  const startedAt = new Date(performance.timeOrigin).toISOString();
  const own: ListedProcess = { kind, name, host: hostname(), pid: process.pid, startedAt, metrics };
  const { processes } = registryKeys;
  // If Redis is away, the next beat notes the process.
  const note = (forMs: number) =>
    script(redis, { processes }, { process: JSON.stringify(own), forMs }).catch(() => undefined);
  while (!signal.aborted) {
    await note(KEPT_MS);
    await delay(EVERY_MS, signal);
  }
  await note(0);
}

/**
 * Leaves out entries that no process of this version has written.
 * @throws the client's error if Redis does not answer
 */
export async function readProcesses(redis: RedisClient): Promise<ListedProcess[]> {
  const now = await timeAt(redis, registryKeys.processes);
  const found = await redis.zrangebyscore(registryKeys.processes, Math.ceil(now), "+inf");
  const listed = found.flatMap((text) => parse(text) ?? []);
  return listed.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function parse(text: string): ListedProcess | undefined {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
