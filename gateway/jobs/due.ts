/** Queues a job that is due. If that fails, puts the job off or ends it. */
import { errorKinds, InferenceError } from "#shared/errors.js";
import type { RequestAddress } from "#shared/queue/address.js";
import type { Tenants } from "../auth/tenants.js";
import type { Jobs } from "./jobs.js";

/**
 * Queues a job, if it is due. Any caller may call this for any job at any time. Of many concurrent
 * calls, one queues the job.
 * @returns after how many ms to call again; undefined if no further call is necessary
 * @throws if the caller cannot know whether the job is queued
 */
export type RunDue = (job: RequestAddress) => Promise<number | undefined>;

/** After so many refusals, a job has been due for about a minute and a half. */
const OFTEN = 8;

/** @param onQueued called for each job that is in the queue now, with how late that is, in ms */
export function dueJobRunner(
  jobs: Jobs,
  tenants: Pick<Tenants, "termsOf">,
  onQueued: (lateMs: number) => void = () => undefined,
): RunDue {
  return async (job) => {
    const view = await jobs.look(job);
    if (view?.dueInMs === undefined) return undefined;
    if (view.dueInMs > 0) return view.dueInMs;
    try {
      if (view.leftMs <= 0) throw tooLate();
      await jobs.runAgain(job, view, view.leftMs, await tenants.termsOf(job.tenant));
      onQueued(-view.dueInMs);
      return undefined;
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
      if (!jobs.mayFitLater(error, job, view.refused >= OFTEN)) {
        await jobs.endWaiting(job, view, error);
        return undefined;
      }
      return jobs.putOff(job, view);
    }
  };
}

function tooLate(): InferenceError {
  return new InferenceError("expired", errorKinds.expired.texts.beforeResult);
}
