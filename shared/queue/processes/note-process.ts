/**
 * The list of gateways and jobs processes, for people who look, and their reports. Nothing depends
 * on the list, so a killed process stays listed for some seconds. Workers say more of themselves
 * (work/).
 */
import { hostname } from "node:os";
import { z } from "zod";
import { timeAt } from "../../redis/clock.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { delay } from "../../retry.js";
import { version } from "../../boot.js";
import { REMEMBERED_MS, registryKeys } from "../keys.js";
import type { ReportField } from "../pieces/report.js";
import { LoadMeter, processLoad } from "./load-meter.js";
import type { ProcessReports } from "./reports.js";

/** The open connections of a gateway's clients. */
const clientConnections = z.object({
  http: z.number(),
  /** Absent if the gateway speaks no gRPC. */
  grpc: z.number().optional(),
});

export type ClientConnections = Readonly<z.infer<typeof clientConnections>>;

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
  load: processLoad.optional(),
  /** Absent in jobs processes, in older gateways, and before a gateway listens. */
  connections: clientConnections.optional(),
});

export type ListedProcess = Readonly<z.infer<typeof schema>>;

const EVERY_MS = 5_000;
const KEPT_MS = 15_000;
const answers = ["noted", "past", "lost"] as const;
const script = defineScript(new URL("./note-process.lua", import.meta.url), (reply) => word(reply, answers), {
  keys: ["processes", "reports", "past"],
  args: ["process", "before", "forMs", "name", "hasReported", "remembered", { report: ["field", "figures"] }],
});

/** A note of a process; note-process.lua explains the terms. */
export interface ProcessNote {
  readonly process: string;
  readonly before: string;
  /** 0: the process has left. */
  readonly forMs: number;
  readonly name: string;
  readonly hasReported: boolean;
  readonly report: readonly ReportField[];
}

export function noteProcess(redis: RedisClient, { hasReported, ...note }: ProcessNote) {
  return script(redis, registryKeys, { ...note, hasReported: hasReported ? 1 : 0, remembered: REMEMBERED_MS });
}

interface ListingTerms extends Pick<ListedProcess, "kind" | "name" | "metrics"> {
  readonly reports: ProcessReports;
  /** Counts the connections of clients; undefined if the process does not listen. */
  readonly connections: () => ClientConnections | undefined;
}

/** Keeps this process listed until `signal` aborts, and sends its report. */
export async function listProcess(
  redis: RedisClient,
  { kind, name, metrics, reports, connections }: ListingTerms,
  signal: AbortSignal,
): Promise<void> {
  const startedAt = new Date(performance.timeOrigin).toISOString();
  const own: ListedProcess = { kind, name, host: hostname(), pid: process.pid, startedAt, metrics, version };
  const meter = new LoadMeter();
  let before = "";
  /** Of the note that is on its way, or that Redis did not answer. */
  let text: string | undefined;
  const note = async (forMs: number, report: readonly ReportField[]) => {
    text ??= forMs === 0 ? before : JSON.stringify({ ...own, load: meter.read(), connections: connections() });
    const { hasReported } = reports;
    const said = await noteProcess(redis, { process: text, before, forMs, name, hasReported, report });
    [before, text] = [text, undefined];
    if (said === "past") reports.startAfterPast();
    else if (said === "lost") reports.lost();
    else reports.arrived();
  };
  // Another server may answer now, without the newest reports.
  const onReady = () => reports.repeat();
  redis.on("ready", onReady).on("+node", onReady);
  // If Redis is away, the next note brings the report, and a text that Redis may have expires.
  while (!signal.aborted) {
    await note(KEPT_MS, reports.next(performance.now())).catch(() => undefined);
    await delay(EVERY_MS, signal);
  }
  redis.off("ready", onReady).off("+node", onReady);
  // The last report goes first, so that a repetition of the farewell finds no report.
  await note(KEPT_MS, reports.next(performance.now(), { isLast: true }))
    .then(() => note(0, []))
    .catch(() => undefined);
  meter.stop();
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
