/** The states of schedules, and the changes that a schedule takes. */
import type { Schedule } from "../../../gateway/answers.js";
import { change } from "../../client/ask.js";
import type { Action } from "../../listing/actions.js";

export const scheduleStates = ["active", "paused", "ended"] as const satisfies readonly Schedule["state"][];

export function schedulePath(id: string, below = ""): string {
  return `/v2/schedules/${encodeURIComponent(id)}${below}`;
}

export const scheduleActions: readonly Action<Schedule>[] = [
  {
    verb: "Pause",
    asks: false,
    isFor: ({ state }) => state === "active",
    run: ({ id }) => change(schedulePath(id, "/pause"), { method: "POST" }),
  },
  {
    verb: "Resume",
    asks: false,
    isFor: ({ state }) => state === "paused",
    run: ({ id }) => change(schedulePath(id, "/resume"), { method: "POST" }),
  },
  {
    verb: "Delete",
    asks: true,
    isFor: () => true,
    run: ({ id }) => change(schedulePath(id), { method: "DELETE" }),
  },
];
