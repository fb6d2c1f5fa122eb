/** Admits a request that runs a job: no client waits for it here, and it runs to its end. */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { RequestAddress } from "#shared/queue/address.js";
import { endsOf } from "../outcomes/counts.js";
import type { PendingRequests } from "../outcomes/pending.js";
import type { Deadlines } from "./deadlines.js";
import { enqueue, outcomeTtlOf, type EnqueueSettings, type JobEntry } from "./enqueue.js";
import { encodeInference, generationFrames } from "./generate.js";
import type { GenerationRequest, InferenceRequest } from "./inference.js";

export type JobRequest =
  | { readonly kind: "tensors"; readonly request: InferenceRequest }
  | { readonly kind: "text"; readonly request: GenerationRequest };

export interface JobSettings {
  readonly queue: EnqueueSettings;
  readonly pending: PendingRequests;
  readonly deadlines: Deadlines;
  /** How long Redis knows a job after its end, in ms. */
  readonly jobTtlMs: number;
}

/**
 * A gateway keeps a job's deadline in memory until the deadline passes, even if the job ends
 * earlier. A gateway does not keep a deadline that is further away than this, in ms. Workers notice
 * that such a deadline has passed, and so does a gateway when a client reads the job.
 */
const LONGEST_KEPT_DEADLINE_MS = 600_000;

/**
 * @returns whether Redis admitted the request now, or by an earlier call under the same key
 * @throws InferenceError if the request is refused
 */
export async function submitJob(
  settings: JobSettings,
  run: JobRequest,
  address: RequestAddress,
  job: JobEntry,
): Promise<"admitted" | "known"> {
  const { queue, pending, deadlines, jobTtlMs } = settings;
  const outcomeTtlMs = outcomeTtlOf(queue, run.request, jobTtlMs);
  const terms = { address, outcomeTtlMs, attendedMs: 0, job };
  const { deadlineMs } = run.request;
  if (run.kind === "text") {
    const { request } = run;
    const under = (model: ServedModel): GenerationRequest => ({ ...request, model });
    const { said } = await enqueue(queue, { ...terms, request, ...generationFrames(queue, job.labels), under });
    if (said === "admitted" && deadlineMs <= LONGEST_KEPT_DEADLINE_MS) {
      deadlines.add(address, { deadlineMs, restMs: request.spec.restMs, ttlMs: outcomeTtlMs });
    }
    return said;
  }
  const { request } = run;
  // The gateway that admitted a request ends it when its deadline passes.
  const waits = { address, outcomeTtlMs, deadlineMs, queuedMs: request.queue?.rejectMs };
  const expected = pending.expect({ ends: endsOf(request.model), ...waits });
  try {
    const { under } = request;
    const { said } = await enqueue(queue, { ...terms, request, encode: encodeInference, under });
    if (said === "known") expected.forget();
    else expected.admitted(false);
    return said;
  } catch (error) {
    expected.forget();
    throw error;
  }
}
