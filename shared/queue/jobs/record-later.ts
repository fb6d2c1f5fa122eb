/** The typed wrapper of record-later.lua: records a job to queue later. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word, type Arg } from "../../redis/script.js";
import { requestName, type RequestAddress } from "../address.js";
import type { JobRecord } from "../pieces/job.js";
import { jobKey, modelTag, outcomeKey } from "../keys.js";
import { loadKeyOf } from "../pieces/load.js";

export interface LaterJob {
  readonly job: RequestAddress;
  readonly due: { readonly atMs: number } | { readonly inMs: number };
  /** Digest of everything that makes two uses of one key the same job. */
  readonly digest: string;
  /** How long Redis keeps the record after the job's end, in ms. */
  readonly ttlMs: number;
  readonly record: JobRecord;
}

/** The limits of waiting jobs; undefined for no limit. */
export interface LaterLimits {
  /** Jobs of a tenant. */
  readonly jobs: number | undefined;
  /** Bytes of all jobs. */
  readonly bytes: number | undefined;
}

const script = defineScript(
  new URL("./record-later.lua", import.meta.url),
  (reply) => word(reply, ["recorded", "known", "mismatch", "too-many", "too-large"]),
  {
    keys: ["record", "load", "outcome"],
    args: ["base", "job", "due", "digest", "ttl", "most", "mostBytes", { fields: ["name", "value"] }],
    durable: true,
  },
);

/** Safe to repeat: a repeated call finds the job of the earlier call as `known`. */
export function recordLater(redis: RedisClient, { job, due, digest, ttlMs, record }: LaterJob, limits: LaterLimits) {
  const keys = { record: jobKey(job), load: loadKeyOf(redis, job.bucket), outcome: outcomeKey(job) };
  return script(redis, keys, {
    base: modelTag(job),
    job: requestName(job),
    due: "atMs" in due ? due.atMs : `+${due.inMs}`,
    digest,
    ttl: ttlMs,
    most: limits.jobs ?? -1,
    mostBytes: limits.bytes ?? -1,
    fields: (Object.entries(record) as [string, Arg][]).map(([name, value]) => ({ name, value })),
  });
}
