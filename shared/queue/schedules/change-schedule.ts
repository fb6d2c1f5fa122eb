/** The typed wrapper of change-schedule.lua: changes or removes a schedule. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { keysOf, type ScheduleName } from "./schedules.js";

const script = defineScript(
  new URL("./change-schedule.lua", import.meta.url),
  (reply) => word(reply, ["changed", "conflict"]),
  { durable: true },
);

export interface ScheduleChange {
  /** Its facts as they were read, JSON. */
  readonly from: string;
  /** As they are to be; undefined where it is to be removed. */
  readonly to: string | undefined;
  /** Redis ms at which it is due next; undefined where it is not. */
  readonly dueAt: number | undefined;
}

export function changeSchedule(
  redis: RedisClient,
  name: ScheduleName,
  { from, to, dueAt }: ScheduleChange,
): Promise<"changed" | "conflict"> {
  return script(redis, keysOf(name), [name.tenant, name.id, from, to ?? "", dueAt ?? ""]);
}
