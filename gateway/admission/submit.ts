/** The journey of one request through the gateway: await the reply, admit, answer; in that order. */
import { createHash, randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { readOutcome, type Outcome } from "#shared/contract/outcome.js";
import { encodeCorrelationId, startRequiredMessage } from "#shared/contract/sequence.js";
import { InferenceError } from "#shared/errors.js";
import { decodeFrame, encodeFrame } from "#shared/frame.js";
import { laneKeys, outcomeKey, sequenceKeys, sequenceName, type Lane } from "#shared/keys.js";
import type { RedisClient } from "#shared/redis/connect.js";
import type { Arg } from "#shared/redis/script.js";
import { retrying } from "#shared/retry.js";
import type { Infer, InferenceOutcome, InferenceRequest } from "../inference.js";
import type { PendingRequests } from "../replies/pending.js";
import { admit, type Admission } from "./admit.js";
import type { OutcomeSweeper } from "./sweep.js";

export interface SubmitSettings {
  readonly redis: RedisClient;
  readonly pending: PendingRequests;
  readonly sweeper: OutcomeSweeper;
  readonly gateway: string;
  readonly shards: number;
  readonly limits: {
    readonly queue: number;
    readonly waitingPerSequence: number;
    readonly liveSequences: number;
  };
  readonly outcomeTtlMs: number;
  readonly idempotencyTtlMs: number;
  readonly log: Logger;
}

/** Admission is idempotent under its request id, so it is retried through a short outage before the client is told to. */
const ADMIT_BUDGET_MS = 2_000;

export function submitter(settings: SubmitSettings): Infer {
  return async (request) => {
    try {
      return present(await submit(settings, request));
    } catch (error) {
      if (error instanceof InferenceError) return { kind: "error", code: error.code, message: error.message };
      settings.log.error({ error: error instanceof Error ? error.stack : String(error) }, "submit failed");
      return { kind: "error", code: "internal", message: "internal error" };
    }
  };
}

async function submit(settings: SubmitSettings, request: InferenceRequest): Promise<Outcome> {
  const { redis, pending, gateway, limits } = settings;
  const { deadlineMs, idempotencyKey } = request;
  const id = requestId(request);
  const lane = laneOf(request, id, settings.shards);
  const frame = encodeFrame(frameMeta(request), request.inputs);
  const outcomeTtlMs = idempotencyKey === undefined ? settings.outcomeTtlMs : settings.idempotencyTtlMs;
  const key = outcomeKey(lane, id);
  const { ready, live } = laneKeys(lane);
  const keys = [ready, key, live];
  const digest = idempotencyKey === undefined ? "" : digestOf(request, frame);
  const args: Arg[] = [id, frame, digest, outcomeTtlMs, deadlineMs, gateway, limits.queue, 0];
  if (request.sequence !== undefined) {
    const { start, end } = request.sequence;
    const name = sequenceName(request.tenant, encodeCorrelationId(request.sequence.id));
    const { seq, state, wait } = sequenceKeys(lane, name);
    keys.push(seq, state, wait);
    args.push(name, start ? 1 : 0, end ? 1 : 0, limits.waitingPerSequence, limits.liveSequences);
  }

  const expected = pending.expect({ request: id, key, outcomeTtlMs, deadlineMs });
  const admission = await admitSurely(redis, keys, args).catch((error: unknown) => {
    expected.forget();
    throw error;
  });
  if (admission.said === "known") {
    // A retry: the first try's worker answers the gateway that asked first, which may be gone.
    if (admission.outcome === undefined) pending.lookSoon(id);
    else {
      expected.forget();
      return readOutcome(admission.outcome.kind, admission.outcome.body);
    }
  } else if (admission.said !== "admitted") {
    expected.forget();
    throw refusal(admission.said, request);
  }
  expected.admitted();
  const settled = await expected.outcome;
  // Nobody can ask for this outcome again, so it need not stay for its TTL.
  if (idempotencyKey === undefined) settings.sweeper.discard(key);
  return settled;
}

async function admitSurely(redis: RedisClient, keys: readonly string[], args: readonly Arg[]): Promise<Admission> {
  try {
    return await retrying(() => admit(redis, keys, args), { budgetMs: ADMIT_BUDGET_MS });
  } catch (cause) {
    if (cause instanceof TypeError) throw cause;
    if (cause instanceof Error && /^(OOM|MISCONF)/.test(cause.message)) {
      throw new InferenceError("unavailable", "the fleet cannot take requests now", { cause });
    }
    throw new InferenceError(
      "outcome_unknown",
      "the request may or may not have been accepted; retry it under its Idempotency-Key",
      {
        cause,
      },
    );
  }
}

/**
 * Random, or derived from the client's key: then the outcome's own record is what recognises a retry, at any gateway. Never from the KServe `id`, which real
 * clients set to the same value for everything.
 */
function requestId({ idempotencyKey, tenant, model }: InferenceRequest): string {
  if (idempotencyKey === undefined) return randomUUID();
  const named = JSON.stringify([tenant, model.name, idempotencyKey]);
  return createHash("sha256").update(named).digest().subarray(0, 16).toString("base64url");
}

/** All steps of a sequence share a lane; so do all tries of a keyed request. */
function laneOf({ model, sequence, tenant }: InferenceRequest, id: string, shards: number): Lane {
  const what = sequence === undefined ? id : `${tenant}:${encodeCorrelationId(sequence.id)}`;
  const shard = shards === 1 ? 0 : createHash("sha256").update(what).digest().readUInt32LE(0) % shards;
  return { model: model.name, version: model.version, shard };
}

function frameMeta({ outputs, parameters }: InferenceRequest) {
  const custom = Object.entries(parameters);
  if (custom.length === 0) return { outputs };
  return {
    outputs,
    parameters: Object.fromEntries(custom.map(([k, v]) => [k, typeof v === "bigint" ? String(v) : v])),
  };
}

/** Of everything that makes two uses of one key the same request. */
function digestOf({ sequence, deadlineMs }: InferenceRequest, frame: Buffer): string {
  const place = sequence && [encodeCorrelationId(sequence.id), sequence.start, sequence.end];
  return createHash("sha256")
    .update(JSON.stringify([place ?? null, deadlineMs]))
    .update(frame)
    .digest("base64url");
}

function refusal(
  said: Exclude<Admission["said"], "admitted" | "known">,
  { model, sequence }: InferenceRequest,
): InferenceError {
  switch (said) {
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

function present(outcome: Outcome): InferenceOutcome {
  return outcome.kind === "result" ? { kind: "result", tensors: decodeFrame(outcome.body).tensors } : outcome;
}
