/** Records a job for a later time, within the limits for jobs that wait. */
import { tooManyOf } from "./budget.js";
import { tokenChargeOf } from "./token-charge.js";
import { errorKinds, fixedError, InferenceError } from "#shared/errors.js";
import type { RequestAddress } from "#shared/queue/address.js";
import type { JobRecord } from "#shared/queue/pieces/job.js";
import { recordLater, type LaterJob } from "#shared/queue/jobs/record-later.js";
import { changeInRedis } from "./ask-redis.js";
import { outcomeTtlOf, requestDigest, tooSoon } from "./enqueue.js";
import { encodeGeneration, encodeInference } from "./generate.js";
import type { JobRequest, JobSettings } from "./submit-job.js";

export interface LaterEntry {
  readonly record: JobRecord;
  /** As in `JobEntry`. */
  readonly asked: string;
  readonly due: LaterJob["due"];
}

/**
 * @returns whether Redis recorded the job now, or by an earlier call under the same key
 * @throws InferenceError if the job is refused
 */
export async function submitLater(
  { queue, jobTtlMs }: JobSettings,
  run: JobRequest,
  job: RequestAddress,
  { record, asked, due }: LaterEntry,
): Promise<"recorded" | "known"> {
  const { redis, limits, buckets } = queue;
  const frame = run.kind === "text" ? encodeGeneration(run.request) : encodeInference(run.request);
  const digest = requestDigest(run.request, frame, asked);
  const ttlMs = outcomeTtlOf(queue, run.request, jobTtlMs);
  // A script of a Cluster sees the jobs of its bucket; jobs spread evenly over the buckets.
  const share = (most: number | undefined) => most && Math.ceil(most / (redis.isCluster ? buckets : 1));
  const { budget } = run.request;
  const own = budget?.counts?.jobs;
  const most = own ?? limits?.laterJobs;
  const shares = { jobs: share(most), bytes: share(limits?.laterBytes) };
  if (run.kind === "text") budget?.checkLater(() => tokenChargeOf(run.request));
  const later = { job, due, digest, ttlMs, record, rates: budget?.ratesIn(queue, job.bucket) };
  let copies = 0;
  const recorded = await changeInRedis(() => recordLater(redis, later, shares, copies++ > 0));
  switch (recorded.said) {
    case "too-soon":
      throw tooSoon(run.request, recorded);
    case "mismatch":
      throw fixedError("idempotency_mismatch", "usual");
    case "too-many":
      throw new InferenceError(
        "tenant_limit",
        `tenant '${job.tenant}' may have ${most} jobs that wait for their time ` +
          `(${own === undefined ? "BATON_DELAYED_LIMIT" : "its limit jobs"})`,
        tooManyOf("jobs"),
      );
    case "too-large":
      throw new InferenceError(
        "queue_full",
        `${errorKinds.queue_full.texts.usual}: jobs that wait for their time may take ${limits?.laterBytes} bytes, ` +
          "all together (BATON_DELAYED_BYTES)",
      );
    default:
      // Without a key, this call has recorded the job, by any of its copies.
      budget?.admitted(recorded.rates);
      return run.request.idempotencyKey === undefined ? "recorded" : recorded.said;
  }
}
