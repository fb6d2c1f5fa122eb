/** Queues a job that is due, and says what becomes of it where that cannot be done. */
import { errorKinds, InferenceError } from "#shared/errors.js";
import type { RequestAddress } from "#shared/queue/address.js";
import type { Jobs } from "./jobs.js";

/**
 * Queues a job, if it is due. It may be called for any job, at any time and by many at once: one of
 * them queues it.
 * @returns after how many ms it is to be called again; undefined where it need not be
 * @throws where it is not known whether that was done
 */
export type RunDue = (job: RequestAddress) => Promise<number | undefined>;

/** A job that was put off so often has been due for about a minute and a half. */
const OFTEN = 8;

export function dueJobRunner(jobs: Jobs): RunDue {
  return async (job) => {
    const view = await jobs.look(job);
    if (view?.dueInMs === undefined) return undefined;
    if (view.dueInMs > 0) return view.dueInMs;
    try {
      if (view.leftMs <= 0) throw tooLate();
      await jobs.runAgain(job, view, view.leftMs);
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
