/** The outbox entries for jobs to queue later, from later.lua. */
import type { RequestAddress } from "../address.js";

/**
 * The type of an outbox entry that asks a jobs process to look at when a job is due. Webhooks
 * cannot subscribe to this type.
 */
export const DUE = "due";

/** A job, and the number of requests that the job had had at the time of the note. */
export interface DueJob {
  /** The address of the job's first request. */
  readonly job: RequestAddress;
  /** How many requests the job has had. */
  readonly run: number;
}

/**
 * @param facts from an entry of the outbox
 * @returns undefined for facts that no script has noted
 */
export function dueJobOf(bucket: number, facts: string): DueJob | undefined {
  try {
    const { job = "", run } = JSON.parse(facts) as { job?: string; run?: string };
    const [model, tenant, request] = job.split(":");
    if (model === undefined || tenant === undefined || request === undefined) return undefined;
    return { job: { bucket, model, tenant, request }, run: Number(run) };
  } catch {
    return undefined;
  }
}
