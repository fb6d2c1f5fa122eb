/** How the outbox tells of jobs that are to be queued later, as later.lua notes them. */
import type { RequestAddress } from "./address.js";

/** In the outbox: somebody is to look at when a job is due. No webhook is told of it. */
export const DUE = "due";

/** A job, and which of its requests is the next one, as it was when this was noted. */
export interface DueJob {
  /** The address of its first request. */
  readonly job: RequestAddress;
  /** How many requests it has had. */
  readonly run: number;
}

/**
 * @param facts those of an entry of the outbox
 * @returns undefined for what no script has noted
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
