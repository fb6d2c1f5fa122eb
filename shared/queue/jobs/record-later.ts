/** The typed wrapper of record-later.lua: records a job to queue later. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text, word, type Arg } from "../../redis/script.js";
import { ratesOfCall, standingsOf, type Rate, type RateStanding } from "../pieces/rates.js";
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
  /** The rates of the client; absent if it has none. */
  readonly rates?: readonly Rate[] | undefined;
}

export type RecordedLater =
  | { readonly said: "recorded" | "known"; readonly rates?: readonly RateStanding[] | undefined }
  | { readonly said: "mismatch" | "too-many" | "too-large" }
  | { readonly said: "too-soon"; readonly name: string; readonly waitUs: number };

/** The limits of waiting jobs; undefined for no limit. */
export interface LaterLimits {
  /** Jobs of a tenant. */
  readonly jobs: number | undefined;
  /** Bytes of all jobs. */
  readonly bytes: number | undefined;
}

const script = defineScript(
  new URL("./record-later.lua", import.meta.url),
  (reply): RecordedLater => {
    const [first, ...rest] = list(reply);
    const said = word(first, ["recorded", "known", "mismatch", "too-many", "too-large", "too-soon"]);
    if (said === "too-soon") return { said, name: text(rest[0]), waitUs: integer(rest[1]) };
    return said === "recorded" || said === "known" ? { said, rates: standingsOf(rest) } : { said };
  },
  {
    keys: ["record", "load", "outcome"],
    args: [
      "base",
      "job",
      "due",
      "digest",
      "ttl",
      "most",
      "mostBytes",
      "rates",
      "repeated",
      { fields: ["name", "value"] },
    ],
    durable: true,
  },
);

/**
 * Safe to repeat: a repeated call finds the job of the earlier call as `known`.
 * @param isRepeated whether an earlier copy may have taken effect: then a job that is there counts
 * in no rate
 */
export function recordLater(
  redis: RedisClient,
  { job, due, digest, ttlMs, record, rates }: LaterJob,
  limits: LaterLimits,
  isRepeated = false,
): Promise<RecordedLater> {
  const keys = { record: jobKey(job), load: loadKeyOf(redis, job.bucket), outcome: outcomeKey(job) };
  return script(redis, keys, {
    base: modelTag(job),
    job: requestName(job),
    due: "atMs" in due ? due.atMs : `+${due.inMs}`,
    digest,
    ttl: ttlMs,
    most: limits.jobs ?? -1,
    mostBytes: limits.bytes ?? -1,
    rates: JSON.stringify(ratesOfCall([{ rates }]) ?? []),
    repeated: isRepeated ? 1 : 0,
    fields: (Object.entries(record) as [string, Arg][]).map(([name, value]) => ({ name, value })),
  });
}
