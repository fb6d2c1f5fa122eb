/** Says in words which limit of the queue stops a request, and names its setting. */
import { jobsShare, type LimitName, type QueuedLimits, type QueueLimits } from "#shared/queue/admission/limits.js";
import { errorKinds, InferenceError } from "#shared/errors.js";
import type { AnyRequest } from "./inference.js";

/** Triton's words, which its clients may look for. */
const FULL = errorKinds.queue_full.texts.usual;

interface Told {
  readonly setting: string;
  readonly most: number | undefined;
  readonly of: "requests" | "bytes";
}

/**
 * @param bytes the request's size in the queue
 * @param leavesRoom whether it is a job or a line of a batch, which leave some of the limits to
 * other requests (limits.lua)
 */
export function queueFull(
  limit: LimitName,
  { model, tenant, budget }: Pick<AnyRequest, "model" | "tenant" | "budget">,
  bytes: number,
  limits: QueueLimits | undefined,
  leavesRoom = false,
): InferenceError {
  const { setting, most, of } = told(limit, limits, budget?.queued);
  const isShared = leavesRoom && !limit.startsWith("tenant");
  const share = isShared ? ", of which jobs and batches may fill nine tenths" : "";
  const largest = isShared && most !== undefined ? jobsShare(most) : most;
  if (of === "bytes" && largest !== undefined && bytes > largest) {
    const why = `the request takes ${bytes} bytes in the queue, which may hold ${String(most)} (${setting})${share}`;
    return new InferenceError("payload_too_large", why);
  }
  const what = `may have ${String(most)} ${of === "bytes" ? "bytes of requests" : "requests"} in the queue (${setting})`;
  switch (limit) {
    case "total-bytes":
      return new InferenceError("queue_full", `${FULL}: all models together ${what}${share}`);
    case "model-requests":
    case "model-bytes":
      return new InferenceError("queue_full", `${FULL}: model '${model.name}' ${what}${share}`);
    case "tenant-requests":
    case "tenant-bytes": {
      const limited = { limit: of === "bytes" ? "queued_bytes" : "queued_requests", scope: "tenant" } as const;
      return new InferenceError("tenant_limit", `tenant '${tenant}' ${what}`, { limited });
    }
  }
}

function told(limit: LimitName, limits: QueueLimits | undefined, { requests, bytes }: QueuedLimits = {}): Told {
  switch (limit) {
    case "total-bytes":
      return { setting: "BATON_TOTAL_QUEUE_BYTES", most: limits?.totalBytes, of: "bytes" };
    case "model-requests":
      return { setting: "BATON_QUEUE_LIMIT", most: limits?.queue, of: "requests" };
    case "model-bytes":
      return { setting: "BATON_QUEUE_BYTES", most: limits?.queueBytes, of: "bytes" };
    case "tenant-requests":
      if (requests !== undefined) return { setting: "its limit queued_requests", most: requests, of: "requests" };
      return { setting: "BATON_TENANT_QUEUE_LIMIT", most: limits?.tenantQueue, of: "requests" };
    case "tenant-bytes":
      if (bytes !== undefined) return { setting: "its limit queued_bytes", most: bytes, of: "bytes" };
      return { setting: "BATON_TENANT_QUEUE_BYTES", most: limits?.tenantQueueBytes, of: "bytes" };
  }
}
