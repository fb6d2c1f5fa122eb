/**
 * Whether a request runs a job, in the metadata of its frame. A worker reports how many it holds.
 */
import type { FrameMeta } from "../frame.js";

export const jobMeta: FrameMeta = { job: true };

/** @returns false for the request of a gateway that does not say so */
export function isJob(meta: FrameMeta): boolean {
  return meta["job"] === true;
}
