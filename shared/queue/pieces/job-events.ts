/** The events of jobs for webhooks, as job-events.lua notes each. */
import { z } from "zod";

export const jobEventTypes = ["job.started", "job.completed", "job.failed", "job.cancelled", "job.expired"] as const;

export type JobEventType = (typeof jobEventTypes)[number];

export function isJobEvent(type: string): type is JobEventType {
  return jobEventTypes.some((one) => one === type);
}

const ms = z.string().transform(Number);

/** How a job stood at the time of its event. Times are Redis ms. */
export const notedJob = z.object({
  model: z.string(),
  /** The name of the job (`requestName`), and the name of the request that ran the job then. */
  job: z.string(),
  request: z.string(),
  state: z.enum(["running", "completed", "failed", "cancelled", "expired"]),
  type: z.string(),
  /** JSON, as the gateway has noted the options. */
  options: z.string(),
  made: z.string().default("0").transform(Number),
  /** Times of the job's record, and of its request's admission, begin and end. */
  at: ms,
  queued: ms.optional(),
  began: ms.optional(),
  ended: ms.optional(),
  pin: z.string().default(""),
  /** How long the job's result is kept, in ms. */
  keep: ms.default(0),
  /** The stored body of an error. */
  failure: z.string().optional(),
  /** From the job's record (job.lua). */
  schedule: z.string().optional(),
  tick: ms.optional(),
  run: ms.optional(),
  wait: ms.optional(),
  /** The job's own webhook, if that wants the event: `target` in the job's record. */
  own: z.string().optional(),
});

export type NotedJob = z.infer<typeof notedJob>;
