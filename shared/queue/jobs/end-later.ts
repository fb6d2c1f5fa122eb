/** The typed wrapper of end-later.lua: ends a job while it waits for its time. */
import { storeOutcome } from "../../contract/outcome.js";
import type { ErrorCode } from "../../errors.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer } from "../../redis/script.js";
import { requestName, type RequestAddress } from "../address.js";
import { stageText, type Stage } from "../pieces/job.js";
import { jobKey, modelTag } from "../keys.js";
import { loadKeyOf } from "../pieces/load.js";

const script = defineScript(new URL("./end-later.lua", import.meta.url), integer, {
  keys: ["record", "load"],
  args: ["base", "job", "stage", "failure", "ttl"],
  durable: true,
});

/**
 * @param stage the only stage at which the script ends the job
 * @param ttlMs how long Redis keeps the record from now on
 */
export async function endLater(
  redis: RedisClient,
  job: RequestAddress,
  stage: Stage,
  error: { readonly code: ErrorCode; readonly message: string },
  ttlMs: number,
): Promise<void> {
  const { body } = storeOutcome({ kind: "error", code: error.code, message: error.message });
  const keys = { record: jobKey(job), load: loadKeyOf(redis, job.bucket) };
  await script(redis, keys, {
    base: modelTag(job),
    job: requestName(job),
    stage: stageText(stage),
    failure: body,
    ttl: ttlMs,
  });
}
