/** The states of jobs, and the changes that a job takes. */
import type { Job } from "../../../gateway/answers.js";
import { change } from "../../client/ask.js";
import type { Action } from "../../listing/actions.js";

export const jobStates = [
  "scheduled",
  "queued",
  "running",
  "completed",
  "failed",
  "cancelled",
  "expired",
] as const satisfies readonly Job["state"][];

/** A job in one of these states has not ended. */
const open: ReadonlySet<Job["state"]> = new Set(["scheduled", "queued", "running"]);

export function jobPath(id: string, below = ""): string {
  return `/v2/jobs/${encodeURIComponent(id)}${below}`;
}

export const jobActions: readonly Action<Job>[] = [
  {
    verb: "Cancel",
    asks: true,
    isFor: ({ state }) => open.has(state),
    run: ({ id }) => change(jobPath(id), { method: "DELETE" }),
  },
  {
    verb: "Retry",
    asks: false,
    isFor: ({ state }) => state === "failed" || state === "expired",
    run: ({ id }) => change(jobPath(id, "/retry"), { method: "POST" }),
  },
];
