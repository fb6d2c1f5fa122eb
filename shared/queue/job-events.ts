/** What webhooks are told of jobs, as job-events.lua notes it. */
import { z } from "zod";

export const jobEventTypes = ["job.started", "job.completed", "job.failed", "job.cancelled", "job.expired"] as const;

export type JobEventType = (typeof jobEventTypes)[number];

export function isJobEvent(type: string): type is JobEventType {
  return jobEventTypes.some((one) => one === type);
}

const ms = z.string().transform(Number);

/** How a job stood when something happened to it. Times are Redis ms. */
export const notedJob = z.object({
  model: z.string(),
  /** Its name (`requestName`), and that of the request that ran it then. */
  job: z.string(),
  request: z.string(),
  state: z.enum(["running", "completed", "failed", "cancelled", "expired"]),
  type: z.string(),
  /** JSON, as they were noted. */
  options: z.string(),
  made: z.string().default("0").transform(Number),
  /** When it was recorded; when its request was admitted, begun and ended. */
  at: ms,
  queued: ms.optional(),
  began: ms.optional(),
  ended: ms.optional(),
  pin: z.string().default(""),
  /** How long its result is kept, in ms. */
  keep: ms.default(0),
  /** The stored body of an error. */
  failure: z.string().optional(),
  /** As its record has them (job.lua). */
  schedule: z.string().optional(),
  tick: ms.optional(),
  run: ms.optional(),
  wait: ms.optional(),
  /** The webhook of its own that wants the event, as `target` in its record. */
  own: z.string().optional(),
});

export type NotedJob = z.infer<typeof notedJob>;
