/** The typed wrapper of make-schedule.lua: records a new schedule. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { keysOf, type ScheduleName } from "./schedules.js";

export interface NewSchedule extends ScheduleName {
  /** JSON. */
  readonly facts: string;
  /** The client's job, unchanged. */
  readonly job: Buffer;
  /** Digest of the client's whole submission. */
  readonly asked: string;
  /** Redis ms. */
  readonly madeAt: number;
  readonly dueAt: number;
  /** The span of the submission, as a traceparent; absent if the submission is not sampled. */
  readonly trace?: string | undefined;
}

/** The limits of schedules, for each tenant and together. */
export interface ScheduleLimits {
  readonly most: number;
  readonly mostBytes: number;
  readonly mostBytesOfAll: number;
}

const said = ["made", "known", "mismatch", "full", "too-large", "no-room"] as const;

const script = defineScript(new URL("./make-schedule.lua", import.meta.url), (reply) => word(reply, said), {
  keys: ["schedule", "ids", "bytes", "due"],
  args: ["tenant", "id", "facts", "job", "asked", "madeAt", "dueAt", "most", "mostBytes", "mostBytesOfAll", "trace"],
  durable: true,
});

export function makeSchedule(
  redis: RedisClient,
  schedule: NewSchedule,
  limits: ScheduleLimits,
): Promise<(typeof said)[number]> {
  return script(redis, keysOf(schedule), { ...schedule, trace: schedule.trace ?? "", ...limits });
}
