/** The states of batches, and the changes that a batch takes. */
import type { Batch } from "../../../gateway/answers.js";
import { change } from "../../client/ask.js";
import type { Action } from "../../listing/actions.js";

export const batchStatuses = [
  "validating",
  "in_progress",
  "finalizing",
  "completed",
  "failed",
  "expired",
  "cancelling",
  "cancelled",
] as const satisfies readonly Batch["status"][];

const open: ReadonlySet<Batch["status"]> = new Set(["validating", "in_progress", "finalizing"]);

export function batchPath(id: string, below = ""): string {
  return `/v1/batches/${encodeURIComponent(id)}${below}`;
}

export const batchActions: readonly Action<Batch>[] = [
  {
    verb: "Cancel",
    asks: true,
    isFor: ({ status }) => open.has(status),
    run: ({ id }) => change(batchPath(id, "/cancel"), { method: "POST" }),
  },
];
