/**
 * Into the queue, surely: the script's arguments, its repetition through a short outage, and its
 * refusals in words.
 */
import { createHash } from "node:crypto";
import { encodeCorrelationId, startRequiredMessage } from "#shared/contract/sequence.js";
import type { RequestAddress } from "#shared/contract/request-id.js";
import { InferenceError } from "#shared/errors.js";
import { sequenceName, type Lane } from "#shared/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { refusesWrites, retrying } from "#shared/retry.js";
import type { Admission, Applicant } from "./admit.js";
import type { Gatherer } from "./gather.js";
import type { AnyRequest, PlaceTerms } from "./place.js";

export interface Door extends PlaceTerms {
  readonly redis: RedisClient;
  readonly gatherer: Gatherer;
  readonly idempotencyTtlMs: number;
}

export interface Entry {
  readonly request: AnyRequest;
  readonly address: RequestAddress;
  readonly frame: Buffer;
  readonly outcomeTtlMs: number;
  /** How long somebody surely wants the stream; 0: it runs for whoever reads. */
  readonly attendedMs: number;
}

/** Admitted now, or known from an earlier try under the same key. */
export type Entered = Extract<Admission, { said: "admitted" | "known" }> & {
  /**
   * Whether Redis was asked more than once. An earlier call whose reply was lost may still be under
   * way on a link that stalled, and would be admitted if it found no record of the request when it
   * arrives: the record must stay for its TTL.
   */
  readonly repeated: boolean;
};

/** Redis is full, or cannot write to its disk: it has refused the request. */
interface Unwritable {
  readonly said: "unwritable";
}
const unwritable: Unwritable = { said: "unwritable" };

/**
 * Admission is idempotent under its request id, so it is retried through a short outage before the
 * client is told to.
 */
const ADMIT_BUDGET_MS = 2_000;

/** A retry under its key must find the outcome for as long as keys are remembered. */
export function keptMs({ idempotencyTtlMs }: Door, { idempotencyKey }: AnyRequest, usualMs: number): number {
  return idempotencyKey === undefined ? usualMs : Math.max(idempotencyTtlMs, usualMs);
}

/** @throws InferenceError when the request is refused */
export async function enter(
  door: Door,
  { request, address, frame, outcomeTtlMs, attendedMs }: Entry,
): Promise<Entered> {
  const { idempotencyKey, deadlineMs, sequence } = request;
  const digest = idempotencyKey === undefined ? "" : digestOf(request, frame);
  const applicant: Applicant = {
    request: address.request,
    frame,
    digest,
    outcomeTtlMs,
    deadlineMs,
    attendedMs,
    sequence: sequence && {
      name: sequenceName(request.tenant, encodeCorrelationId(sequence.id)),
      start: sequence.start,
      end: sequence.end,
    },
  };
  const { admission, repeated } = await admitSurely(door.gatherer, address.lane, applicant);
  if (admission.said === "admitted" || admission.said === "known") return { ...admission, repeated };
  throw refusal(admission.said, request);
}

async function admitSurely(gatherer: Gatherer, lane: Lane, applicant: Applicant) {
  let calls = 0;
  const attempt = async (): Promise<Admission | Unwritable> => {
    calls++;
    try {
      return await gatherer.admit(lane, applicant);
    } catch (error) {
      // It stays full for longer than a client can wait, and asking again only takes its time.
      // Where the reply of an earlier call was lost, the request may have been admitted all the
      // same, so nobody may be told that it was not.
      if (calls === 1 && refusesWrites(error)) return unwritable;
      throw error;
    }
  };
  try {
    const admission = await retrying(attempt, { budgetMs: ADMIT_BUDGET_MS });
    return { admission, repeated: calls > 1 };
  } catch (cause) {
    if (cause instanceof TypeError) throw cause;
    throw new InferenceError(
      "outcome_unknown",
      "the request may or may not have been accepted; retry it under its Idempotency-Key",
      { cause },
    );
  }
}

/** Of everything that makes two uses of one key the same request. */
function digestOf({ sequence, deadlineMs }: AnyRequest, frame: Buffer): string {
  const place = sequence && [encodeCorrelationId(sequence.id), sequence.start, sequence.end];
  return createHash("sha256")
    .update(JSON.stringify([place ?? null, deadlineMs]))
    .update(frame)
    .digest("base64url");
}

type Refused = Exclude<Admission["said"] | Unwritable["said"], Entered["said"]>;

function refusal(said: Refused, { model, sequence }: AnyRequest): InferenceError {
  switch (said) {
    case "unwritable":
      return new InferenceError("unavailable", "the fleet takes no requests now: its queue cannot be written to");
    case "mismatch":
      return new InferenceError("idempotency_mismatch", "the Idempotency-Key was used for a different request");
    case "queue-full":
      return new InferenceError("queue_full", "Exceeds maximum queue size");
    case "start-required":
      if (sequence === undefined) throw new TypeError("a stateless request cannot lack START");
      return new InferenceError("sequence_start_required", startRequiredMessage(model.name, sequence.id));
    case "backlog-full":
      return new InferenceError("sequence_backlog", "too many steps of this sequence are waiting");
    case "too-many-sequences":
      return new InferenceError("sequence_limit", "too many live sequences");
  }
}
