/**
 * The journey of one inference through the gateway: expect its outcome, then admit it, then answer.
 */
import type { Logger } from "pino";
import { outcomeOf, readKept, stepOf, type Outcome } from "#shared/contract/outcome.js";
import { encodeRequestId, type RequestAddress } from "#shared/queue/address.js";
import { errorKinds, fixedError, InferenceError } from "#shared/errors.js";
import { decodeFrame } from "#shared/frame.js";
import { outcomeKey } from "#shared/queue/keys.js";
import {
  isRepeatable,
  type Inference,
  type InferenceOutcome,
  type InferenceRequest,
  type StreamingRequest,
} from "./inference.js";
import { endsOf } from "../outcomes/counts.js";
import type { Expected, PendingRequests } from "../outcomes/pending.js";
import { giveUp } from "./end-request.js";
import { enqueue, outcomeTtlOf, type EnqueueSettings, type Enqueued } from "./enqueue.js";
import { encodeInference, generate, type GenerateSettings } from "./generate.js";
import { requestAddress } from "./request-id.js";
import type { OutcomeSweeper } from "../outcomes/sweep.js";
import type { OpenStream } from "../stream/open-stream.js";

export interface SubmitSettings {
  readonly queue: EnqueueSettings;
  readonly pending: PendingRequests;
  readonly sweeper: OutcomeSweeper;
  /** How long Redis keeps an outcome for a client that waits for it, in ms. */
  readonly outcomeTtlMs: number;
  /** How long Redis keeps an outcome for a client that comes back for it, in ms. */
  readonly resultTtlMs: number;
  readonly log: Logger;
}

/** Answers the protocols by way of the queue in Redis. */
export class QueuedInference implements Inference {
  readonly #settings: SubmitSettings & GenerateSettings;

  constructor(settings: SubmitSettings & GenerateSettings) {
    this.#settings = settings;
  }

  async infer(request: InferenceRequest): Promise<InferenceOutcome> {
    try {
      return toInferenceOutcome(await submit(this.#settings, request));
    } catch (error) {
      if (!(error instanceof InferenceError)) {
        this.#settings.log.error({ error: error instanceof Error ? error.stack : String(error) }, "submit failed");
      } else if (error.limited !== undefined) {
        // The outcome of a request has no place for a limit, because a refused request has none.
        return { kind: "error", code: error.code, message: error.message, limited: error.limited };
      }
      return outcomeOf(error);
    }
  }

  inferLater(request: InferenceRequest): Promise<string> {
    return submitLater(this.#settings, request);
  }

  generate(request: StreamingRequest): Promise<OpenStream> {
    return generate(this.#settings, request);
  }
}

/** Does the work of `Inference.inferLater`. */
export async function submitLater(settings: SubmitSettings, request: InferenceRequest): Promise<string> {
  // The gateway expects the outcome even without a waiting client, because the gateway that
  // admitted a request ends it when its deadline passes.
  const { id, known, expected } = await admit(settings, request, settings.resultTtlMs, 0);
  if (known !== undefined) expected.forget();
  return id;
}

type CancelSettings = SubmitSettings & Pick<GenerateSettings, "bus">;

async function submit(settings: CancelSettings, request: InferenceRequest): Promise<Answered> {
  if (request.client?.hasLeft === true && !isRepeatable(request)) throw fixedError("cancelled", "clientLeft");
  const admitted = await admit(settings, request, settings.outcomeTtlMs, undefined);
  const { id, key, isRepeated, known, expected, version } = admitted;
  if (known !== undefined) {
    expected.forget();
    return { outcome: known, version, id, isRepeated };
  }
  const outcome = await unlessGone(settings, request, admitted);
  // Without a key no client can ask for this outcome again, so it need not stay for its TTL. But
  // the worker of a request that was cancelled finds the cancellation there.
  if (request.idempotencyKey === undefined && request.client?.hasLeft !== true) settings.sweeper.discard(key);
  return { outcome, version, id, isRepeated };
}

/** Waits for an outcome for as long as its client does. */
function unlessGone(
  { queue, bus, outcomeTtlMs }: CancelSettings,
  request: InferenceRequest,
  { expected, address }: Admitted,
): Promise<Outcome> {
  const { client } = request;
  if (client === undefined || isRepeatable(request)) return expected.outcome;
  return new Promise((resolve, reject) => {
    const leave = () => {
      resolve({ kind: "error", code: "cancelled", message: errorKinds.cancelled.texts.clientLeft });
      expected.forget();
      giveUp({ redis: queue.redis, bus }, address, outcomeTtlMs).catch(() => undefined);
    };
    if (client.hasLeft) return leave();
    const forget = client.onLeave(leave);
    expected.outcome.then(resolve, reject).finally(forget);
  });
}

interface Answered extends Pick<Admitted, "id" | "isRepeated"> {
  readonly outcome: Outcome;
  /** The version of the model that has run. */
  readonly version: string;
}

interface Admitted {
  readonly address: RequestAddress;
  /** The public id. */
  readonly id: string;
  /** Redis key of the outcome. */
  readonly key: string;
  /** Whether an earlier call admitted the request. */
  readonly isRepeated: boolean;
  readonly expected: Expected;
  /** The outcome, if the request had ended before this call. */
  readonly known: Outcome | undefined;
  readonly version: string;
}

/**
 * @param attendedMs 0 if no client waits for the request, else undefined
 * @throws InferenceError if the request is refused
 */
async function admit(
  { queue, pending }: SubmitSettings,
  request: InferenceRequest,
  ttlMs: number,
  attendedMs: 0 | undefined,
): Promise<Admitted> {
  const address = requestAddress(request, queue);
  const outcomeTtlMs = outcomeTtlOf(queue, request, ttlMs);
  const { deadlineMs, queue: waits } = request;
  const ends = endsOf(request.model);
  const expected = pending.expect({ ends, address, outcomeTtlMs, deadlineMs, queuedMs: waits?.rejectMs });
  let enqueued: Enqueued;
  try {
    const { under } = request;
    enqueued = await enqueue(queue, { request, address, encode: encodeInference, under, outcomeTtlMs, attendedMs });
  } catch (error) {
    expected.forget();
    throw error;
  }
  const isRepeated = enqueued.said === "known";
  expected.admitted(isRepeated);
  const outcome = enqueued.said === "known" ? enqueued.outcome : undefined;
  const known = outcome && readKept(outcome.kind, outcome.body);
  const { version } = enqueued;
  return { id: encodeRequestId(address), address, key: outcomeKey(address), isRepeated, expected, known, version };
}

function toInferenceOutcome({ outcome, version, id, isRepeated }: Answered): InferenceOutcome {
  if (outcome.kind === "error") return { ...outcome, id, isRepeated };
  const { meta, tensors, note } = decodeFrame(outcome.body);
  return { kind: "result", tensors, version, step: stepOf(meta), id, isRepeated, note };
}
