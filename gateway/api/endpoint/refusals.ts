/** The refusals that a document lists: those of an endpoint, and those of every endpoint. */
import { errorKinds, type ErrorCode } from "#shared/errors.js";

/** Any request may be refused in these ways, by the server or before its handler. */
export const ofEveryEndpoint: readonly ErrorCode[] = [
  "invalid_argument",
  "forbidden",
  "restricted_api",
  "request_timeout",
  "payload_too_large",
  "cancelled",
  "rate_limit_exceeded",
  "internal",
  "unavailable",
];
/** A request with a body may also be refused in these ways. */
export const ofBodies: readonly ErrorCode[] = ["invalid_json", "unsupported"];

/** The refusals of a request that is to be queued for a model. */
export const queueRefusals: readonly ErrorCode[] = [
  "unknown_model",
  "model_unavailable",
  "data_shape_mismatch",
  "sequence_start_required",
  "sequence_backlog",
  "sequence_limit",
  "version_retired",
  "ahead_of_state",
  "behind_of_state",
  "idempotency_mismatch",
  "tenant_limit",
  "stream_limit",
  "insufficient_quota",
  "queue_full",
  "outcome_unknown",
];
/** The errors with which a queued request ends. */
export const runFailures: readonly ErrorCode[] = [
  "model_error",
  "poison_request",
  "expired",
  "request_lost",
  "state_lost",
  "state_corrupt",
  "state_too_large",
];

/** @returns the codes by their status, without doubles */
export function refusalsByStatus(own: readonly ErrorCode[], hasBody: boolean): ReadonlyMap<number, ErrorCode[]> {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of new Set([...ofEveryEndpoint, ...(hasBody ? ofBodies : []), ...own])) {
    const { status } = errorKinds[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return byStatus;
}
