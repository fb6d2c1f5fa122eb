/** Suspects: requests that may have ended their last worker. Each runs alone before it counts. */
import { fixedError } from "#shared/errors.js";
import { beginAlone } from "#shared/queue/work/read/begin-alone.js";
import { retrying } from "#shared/retry.js";
import type { Held } from "../lane/holdings.js";
import type { LaneContext } from "../lane/lane.js";
import { failSequence } from "./ends.js";
import type { RunLog } from "./iterate.js";
import type { Settling } from "./settling.js";

export interface SuspectSettings {
  /** How often a request may run by itself without a commit, before it goes to the dead stream. */
  readonly maxRunsAlone: number;
  /** Absent for a model that runs once for each request, and answers once. */
  readonly runs?: RunLog | undefined;
}

/** A suspect that is to run alone now. */
export interface Begun {
  /** The suspect as it goes on: a request may have come some way at its last worker. */
  readonly held: Held;
  /** How many answers its log has. */
  readonly logged: number;
}

/**
 * Notes in Redis that a suspect runs alone now, or ends it.
 * @returns undefined if the suspect does not run: it has ended, or is another worker's
 * @throws Error if Redis cannot be asked
 */
export async function beginSuspect(
  { settler, world, log }: LaneContext,
  settling: Settling,
  { maxRunsAlone, runs }: SuspectSettings,
  suspect: Held,
): Promise<Begun | undefined> {
  // `beginAlone` counts a run, and without its state the request would not run.
  if ((await suspect.state).kind === "unavailable") {
    settling.leave([suspect]);
    return undefined;
  }
  const resumed = await runs?.resume(suspect);
  if (resumed?.kind === "settle") {
    await settling.begin([resumed.settled]);
    return undefined;
  }
  const run = world.uuid();
  const verdict = await retrying(() => beginAlone(settler.queue, suspect.delivery, maxRunsAlone, run), {
    budgetMs: settler.patienceMs,
    world,
  });
  if (verdict === "run") return resumed ?? { held: suspect, logged: 0 };
  if (verdict === "lost") settling.drop([suspect]);
  else {
    const { request, step } = suspect.delivery;
    log.error({ request, step }, "request set aside");
    await settling.begin([failSequence(suspect, fixedError("poison_request", "usual"), "poison_request")]);
  }
  return undefined;
}
