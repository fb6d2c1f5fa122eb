/** The cost for Redis of live sequences without steps, and of their expiry. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { runChild } from "../support/child.js";
import { startBenchFleet } from "../support/fleet.js";
import { cpuPercent, describeCalls, readCounters, spentBetween } from "./counters.js";
import { copiesOfAccumulate, STATE_BYTES } from "./models.js";
import type { SumsJob, SumsResult } from "./sums.js";
import { asking, pause, within, type RowResult } from "./window.js";

export interface IdleSequencesPlan {
  readonly folder: string;
  /** How many sequences there are. */
  readonly count: number;
  /**
   * How long an idle sequence lives, in ms: longer than the making and measuring of all sequences.
   */
  readonly idleMs: number;
  readonly progress: (line: string) => void;
}

/** A figure is NaN if the sequences did not outlive the measurement. */
export interface IdleSequencesCost extends RowResult {
  /** Bytes of Redis' memory per sequence, without its state. */
  readonly bytesEach: number;
  /** Redis' CPU with the idle sequences, less the CPU without them, in percent of a core. */
  readonly backgroundPercent: number;
  /** Microseconds of Redis' CPU per sequence that expires. */
  readonly reapUs: number;
}

const MODEL = "sum";
const BATCH = 128;
/** After this time, Redis has removed outcomes that clients got. */
const SETTLED_MS = 1_500;
const IDLE_MEASURED_MS = 2_000;
const LOOK_EVERY_MS = 250;
/** Keys that exist after this time stay, because some keys outlive their sequence. */
const REAPED_WITHIN_MS = 8_000;

export async function measureIdleSequences(plan: IdleSequencesPlan): Promise<IdleSequencesCost> {
  const { count, idleMs, progress } = plan;
  const folder = mkdtempSync(join(plan.folder, "idle-sequences-"));
  const repository = copiesOfAccumulate(join(folder, "models"), [{ name: MODEL, batch: BATCH, idleMs }]);
  const fleet = await startBenchFleet({ folder, repository, models: [MODEL], workers: 1, env: {} });
  try {
    return await asking(fleet.redis, async (redis) => {
      await pause(SETTLED_MS);
      const before = await readCounters(redis);
      const keysBefore = await redis.dbsize();
      const quiet = await within(redis, IDLE_MEASURED_MS);
      const startedAt = performance.now();
      const made = await runChild<SumsJob, SumsResult>(new URL("./sums.js", import.meta.url), {
        port: fleet.port,
        model: MODEL,
        begin: count,
      });
      await pause(SETTLED_MS);
      const alive = await readCounters(redis);
      const keys = (await redis.dbsize()) - keysBefore;
      const idle = await within(redis, IDLE_MEASURED_MS);
      const inTime = performance.now() - startedAt < idleMs;
      if (!inTime) progress(`${count} sequences took too long to make; they had begun to expire`);

      await pause(Math.max(0, startedAt + idleMs - performance.now()));
      const from = await readCounters(redis);
      const giveUpAt = performance.now() + made.seconds * 1_000 + REAPED_WITHIN_MS;
      let left = keys;
      while (left > count / 100 && performance.now() < giveUpAt) {
        await pause(LOOK_EVERY_MS);
        left = (await redis.dbsize()) - keysBefore;
      }
      const reaped = spentBetween(from, await readCounters(redis));
      const asUsualMs = (quiet.cpuMs / quiet.seconds) * reaped.seconds;
      const bytesEach = (alive.memoryBytes - before.memoryBytes) / count - STATE_BYTES;
      return {
        bytesEach: inTime ? bytesEach : Number.NaN,
        backgroundPercent: inTime ? cpuPercent(idle) - cpuPercent(quiet) : Number.NaN,
        reapUs: inTime ? ((reaped.cpuMs - asUsualMs) * 1_000) / count : Number.NaN,
        checked: made.checked,
        wrong: made.wrong,
        detail:
          `${count} sequences made in ${made.seconds.toFixed(1)} s, ${(keys / count).toFixed(2)} keys each; ` +
          `Redis without them ${cpuPercent(quiet).toFixed(2)} % of a core, with them ${cpuPercent(idle).toFixed(2)} %, ` +
          `while they expired ${cpuPercent(reaped).toFixed(2)} % for ${reaped.seconds.toFixed(1)} s, ` +
          `${left} keys left; calls per sequence meanwhile: ${describeCalls(reaped.calls, count)}`,
      };
    });
  } finally {
    await fleet.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}
