/** The typed wrapper of change-schedule.lua: changes or removes a schedule. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { keysOf, type ScheduleName } from "./schedules.js";

const script = defineScript(
  new URL("./change-schedule.lua", import.meta.url),
  (reply) => word(reply, ["changed", "conflict"]),
  {
    keys: ["schedule", "ids", "bytes", "due"],
    args: ["tenant", "id", "from", "to", "dueAt"],
    durable: true,
  },
);

export interface ScheduleChange {
  /** The schedule's facts that the caller has read, JSON. */
  readonly from: string;
  /** The new facts; undefined to remove the schedule. */
  readonly to: string | undefined;
  /** Redis ms at which the schedule is due next; undefined if never. */
  readonly dueAt: number | undefined;
}

export function changeSchedule(
  redis: RedisClient,
  name: ScheduleName,
  { from, to, dueAt }: ScheduleChange,
): Promise<"changed" | "conflict"> {
  return script(redis, keysOf(name), { ...name, from, to: to ?? "", dueAt: dueAt ?? "" });
}
