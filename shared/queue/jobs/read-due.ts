/** The typed wrapper of read-due.lua: reads when a waiting job is due. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer } from "../../redis/script.js";
import { jobKey } from "../keys.js";
import type { DueJob } from "../pieces/later.js";

const script = defineScript(
  new URL("./read-due.lua", import.meta.url),
  (reply) => (reply === null ? undefined : integer(reply)),
  { keys: ["record"], args: ["made"] },
);

/** @returns after how many ms; undefined if the job does not wait, or waits for a later run */
export function readDue(redis: RedisClient, { job, run }: DueJob): Promise<number | undefined> {
  return script(redis, { record: jobKey(job) }, { made: run });
}
