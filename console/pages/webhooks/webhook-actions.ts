/** The events of webhooks, and the changes that a webhook takes. */
import type { Webhook } from "../../../gateway/answers.js";
import { change } from "../../client/ask.js";
import type { Action } from "../../listing/actions.js";

export type EventName = Webhook["events"][number];

export const eventNames = [
  "job.started",
  "job.completed",
  "job.failed",
  "job.cancelled",
  "job.expired",
  "sequence.expired",
  "batch.completed",
  "batch.failed",
  "batch.cancelled",
  "batch.expired",
] as const satisfies readonly EventName[];

export function webhookPath(id: string, below = ""): string {
  return `/v2/webhooks/${encodeURIComponent(id)}${below}`;
}

export function stateOf({ enabled, disabled_reason: reason }: Webhook): string {
  if (enabled) return "enabled";
  return reason ?? "paused";
}

const enable = (id: string, enabled: boolean) => change(webhookPath(id), { method: "PATCH", body: { enabled } });

export const webhookActions: readonly Action<Webhook>[] = [
  { verb: "Pause", asks: false, isFor: ({ enabled }) => enabled, run: ({ id }) => enable(id, false) },
  { verb: "Resume", asks: false, isFor: ({ enabled }) => !enabled, run: ({ id }) => enable(id, true) },
  {
    verb: "Delete",
    asks: true,
    isFor: () => true,
    run: ({ id }) => change(webhookPath(id), { method: "DELETE" }),
  },
];
