/** How a job stands, as view.lua reads it. */
import { jobView } from "../../records/jobs.js";
import type { Values } from "../../records/record.js";
import { word } from "../../redis/script.js";

/** The states of a job; it ends in one of the last four. */
export const jobStates = ["scheduled", "queued", "running", "completed", "failed", "cancelled", "expired"] as const;

export type JobState = (typeof jobStates)[number];

/** The fields stand in the declaration. */
export interface JobView extends Omit<Values<typeof jobView.fields>, "state"> {
  readonly state: JobState;
}

/** Decodes a view. */
export function viewOf(reply: unknown): JobView {
  const view = jobView.read(reply);
  const { queuedAt = 0, beganAt } = view;
  // Redis rounds the time since then by itself.
  return {
    ...view,
    state: word(view.state, jobStates),
    beganAt: beganAt === undefined ? undefined : Math.max(beganAt, queuedAt),
  };
}
