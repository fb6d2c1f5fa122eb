/**
 * A worker dies under a stream, at histories of several lengths: how long the client waits beyond
 * the lease, and how much of that is recomputing.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { decodeEntry } from "#shared/queue/entry.js";
import type { Lane } from "#shared/queue/address.js";
import { bucketTag } from "#shared/queue/bucket-tag.js";
import { GROUP, logKey } from "#shared/queue/keys.js";
import type { Member } from "../../support/fleet/member.js";
import { runChild } from "../support/child.js";
import { BUCKETS, startBenchFleet, type BenchFleet, type BenchFleetPlan } from "../support/fleet.js";
import { long, type StreamModel } from "../support/models.js";
import type { InterruptedJob, InterruptedResult } from "./interrupted.js";
import type { Recompute, RecomputeJob } from "./recompute.js";

export interface TakeoverPlan {
  /** Folder for a fleet of its own, with two workers. */
  readonly folder: string;
  readonly repository: string;
  /** Files of prompts and answers, by length of history. */
  readonly references: ReadonlyMap<number, string>;
  /** How many kills there are at each length of history. */
  readonly times: number;
  readonly progress: (line: string) => void;
}

export interface Takeover {
  /** How many tokens the log had when the worker was dead. */
  readonly logged: number;
  /**
   * The client's longest pause, less the lease, in milliseconds. Records that the gateway had not
   * sent yet when the worker died may cut the pause in two.
   */
  readonly pauseBeyondLeaseMs: number;
  /** Milliseconds from the kill to the successor's first token, less the rest of the lease. */
  readonly costMs: number;
}

export interface Takeovers {
  readonly history: number;
  readonly kills: readonly Takeover[];
}

export interface TakeoverResult {
  readonly leaseMs: number;
  readonly takeovers: readonly Takeovers[];
  readonly recompute: readonly Recompute[];
  readonly checked: number;
  readonly wrong: number;
}

export const HISTORIES = [100, 500, 2_000] as const;

const LEASE_MS = 1_000;
/** How many tokens follow the history: more than the worker makes before the kill takes effect. */
const REST = 512;
/** The default of BATON_PREFILL_TOKENS. */
const CHUNK = 256;

/**
 * The prompts and answers of `long` for the takeovers. Each stream has a prompt of its own, because
 * a cached prompt would spare the recomputing. Another prompt of the shortest history warms the
 * survivor up.
 */
export function answersFor(times: number): ReadonlyMap<number, StreamModel> {
  const model = (history: number, i: number): StreamModel => {
    return { ...long, answerTokens: history + REST, prompts: times + (i === 0 ? 1 : 0) };
  };
  return new Map(HISTORIES.map((history, i) => [history, model(history, i)]));
}

export async function measureTakeovers(plan: TakeoverPlan): Promise<TakeoverResult> {
  const { times } = plan;
  const longest = referencesOf(plan, HISTORIES[2]);
  const job: RecomputeJob = { references: longest, histories: HISTORIES, chunk: CHUNK };
  const { passes } = await runChild<RecomputeJob, { passes: Recompute[] }>(
    new URL("./recompute.js", import.meta.url),
    job,
  );
  const folder = mkdtempSync(join(plan.folder, "takeover-"));
  const fleetPlan: BenchFleetPlan = {
    folder,
    repository: plan.repository,
    models: [long.name],
    workers: 2,
    env: { BATON_LEASE_MS: String(LEASE_MS), BATON_MODELS: long.name },
  };
  const fleet = await startBenchFleet(fleetPlan);
  try {
    const count = { checked: 0, wrong: 0 };
    const interrupt = async (history: number, prompt: number): Promise<Takeover> => {
      const references = referencesOf(plan, history);
      const { result, takeover } = await interruptOne(fleet, { port: fleet.port, references, prompt, history });
      if (result.fault !== undefined) plan.progress(`takeover at ${history}: ${result.fault}`);
      count.checked += result.checked;
      count.wrong += result.wrong;
      return takeover;
    };
    await interrupt(HISTORIES[0], times); // warms the survivor up
    const takeovers: Takeovers[] = [];
    for (const history of HISTORIES) {
      const kills: Takeover[] = [];
      for (let i = 0; i < times; i++) kills.push(await interrupt(history, i));
      takeovers.push({ history, kills });
    }
    return { leaseMs: LEASE_MS, takeovers, recompute: passes, ...count };
  } finally {
    await fleet.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}

function referencesOf({ references }: TakeoverPlan, history: number): string {
  const file = references.get(history);
  if (file === undefined) throw new Error(`no answers for histories of ${history}`);
  return file;
}

async function interruptOne(
  fleet: BenchFleet,
  job: InterruptedJob,
): Promise<{ readonly result: InterruptedResult; readonly takeover: Takeover }> {
  const redis = fleet.redis.connect();
  let killing: Promise<Kill> | undefined;
  try {
    const result = await runChild<InterruptedJob, InterruptedResult>(
      new URL("./interrupted.js", import.meta.url),
      job,
      () => {
        killing = killHolder(fleet, redis);
        killing.catch(() => undefined); // `await killing` below throws the error
      },
    );
    const kill = await killing;
    if (kill === undefined) throw new Error("the stream ended before its worker was killed");
    await kill.worker.start();
    return { result, takeover: takeoverOf(result, kill) };
  } finally {
    redis.disconnect();
  }
}

interface Kill {
  readonly worker: Member;
  /** Milliseconds on the wall clock. */
  readonly at: number;
  readonly leaseLeftMs: number;
  readonly logged: number;
}

async function killHolder({ workers }: BenchFleet, redis: Redis): Promise<Kill> {
  const found = await Promise.all(
    Array.from({ length: BUCKETS }, async (_, bucket) => {
      const [ready = ""] = await redis.keys(`ready:${bucketTag(bucket)}:${long.name}:*`);
      const pending = ready === "" ? [] : await redis.xpending(ready, GROUP, "-", "+", 1);
      return { bucket, ready, pending: pending as [string, string, number, number][] };
    }),
  );
  const held = found.find(({ pending }) => pending.length > 0);
  if (held?.pending[0] === undefined) throw new Error("the stream ended before its worker was killed");
  const { bucket, ready } = held;
  const [entry, consumer, idleMs] = held.pending[0];
  const worker = workers.find(({ name }) => consumer.startsWith(`${name}.`));
  const [read] = await redis.xrangeBuffer(ready, entry, entry);
  const lane: Lane = { bucket, model: long.name, version: "1", digest: "" };
  const delivery = read && decodeEntry(lane, ...read);
  if (worker === undefined || delivery === undefined) throw new Error(`nobody known holds the stream: ${consumer}`);
  const at = performance.timeOrigin + performance.now();
  await worker.kill();
  const logged = await redis.llen(logKey(delivery));
  return { worker, at, leaseLeftMs: LEASE_MS - idleMs, logged };
}

function takeoverOf({ pauseMs, came }: InterruptedResult, { at, leaseLeftMs, logged }: Kill): Takeover {
  const resumed = came.find(([index]) => index >= logged);
  if (resumed === undefined) throw new Error("the stream had ended before its worker was killed");
  return { logged, pauseBeyondLeaseMs: pauseMs - LEASE_MS, costMs: resumed[1] - at - leaseLeftMs };
}
