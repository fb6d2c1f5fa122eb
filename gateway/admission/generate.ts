/**
 * The journey of a generation, or of a request to a decoupled model, through the gateway: subscribe
 * and admit, then hand on its stream.
 */
import type { Logger } from "pino";
import { encodeRequestId, type RequestAddress } from "#shared/queue/address.js";
import { errorKinds, fixedError, InferenceError } from "#shared/errors.js";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { GenerationShare } from "#shared/contract/generation.js";
import { encodeFrame, type FrameMeta } from "#shared/frame.js";
import type { Bus } from "#shared/nats/connect.js";
import { isGeneration, type GenerationRequest, type InferenceRequest, type StreamingRequest } from "./inference.js";
import type { OpenStream } from "../stream/open-stream.js";
import { Cursor } from "../stream/cursor.js";
import type { Relay } from "../stream/relay.js";
import type { Deadlines } from "./deadlines.js";
import { endRequest, type EndedRequest } from "./end-request.js";
import { enqueue, outcomeTtlOf, weightOf, type EnqueueSettings, type Enqueued, type QueueEntry } from "./enqueue.js";
import { requestAddress } from "./request-id.js";

export interface GenerateSettings {
  readonly queue: EnqueueSettings;
  readonly bus: Bus;
  readonly relay: Relay;
  readonly deadlines: Deadlines;
  /** How long Redis keeps a stream's log after its end, in ms. */
  readonly streamTtlMs: number;
  /** How long Redis keeps the log of a background request after its end, in ms. */
  readonly resultTtlMs: number;
  /** How long a stream runs on without a reader, in ms. */
  readonly graceMs: number;
  readonly log: Logger;
}

/**
 * Admits a generation.
 * @throws InferenceError if the gateway or Redis refuses it; never any other error
 */
export async function generate(settings: GenerateSettings, request: StreamingRequest): Promise<OpenStream> {
  try {
    return await admitStream(settings, request);
  } catch (error) {
    if (error instanceof InferenceError) throw error;
    settings.log.error({ error: error instanceof Error ? error.stack : String(error) }, "generate failed");
    throw fixedError("internal", "usual", { cause: error });
  }
}

async function admitStream(settings: GenerateSettings, request: StreamingRequest): Promise<OpenStream> {
  const { queue, relay, deadlines, streamTtlMs, resultTtlMs, graceMs } = settings;
  const { background, deadlineMs } = request;
  const address = requestAddress(request, queue);
  const outcomeTtlMs = outcomeTtlOf(queue, request, background ? resultTtlMs : streamTtlMs);
  // Subscription and admission run side by side. Records that a worker publishes before the NATS
  // server knows the subscription are in the log.
  const subscribed = background ? Promise.resolve() : relay.subscribe(address);
  try {
    const attendedMs = background ? 0 : graceMs;
    const terms = { address, outcomeTtlMs, attendedMs };
    const [enqueued] = await Promise.all([enqueueAs(queue, request, terms), subscribed]);
    const isNew = enqueued.said === "admitted";
    const hasEnded = enqueued.said === "known" && enqueued.outcome !== undefined;
    // This gateway keeps the deadline even if another gateway admitted the request, because that
    // gateway may be gone.
    if (!hasEnded) deadlines.add(address, { deadlineMs, restMs: restOf(request), ttlMs: outcomeTtlMs });
    if (isNew) relay.admitted(address);
    else relay.release(address);
    return openStream(settings, { address, ttlMs: outcomeTtlMs }, isNew);
  } catch (error) {
    relay.release(address);
    // If Redis did admit the request, no client knows its id, so none will ever read its stream.
    const isUnknown = error instanceof InferenceError && error.code === "outcome_unknown";
    if (isUnknown && !background && request.idempotencyKey === undefined) {
      // The call may still be under way, and must not admit the request behind the cancellation.
      const overtaken = queue.batcher.overtake(address.bucket, graceMs);
      overtaken.then(() => cancel(settings, { address, ttlMs: outcomeTtlMs })).catch(() => undefined);
    }
    throw error;
  }
}

/** Puts a request into its queue in the form that its model's workers read. */
function enqueueAs(
  queue: EnqueueSettings,
  request: StreamingRequest,
  terms: Pick<QueueEntry<StreamingRequest>, "address" | "outcomeTtlMs" | "attendedMs">,
): Promise<Enqueued> {
  if (!isGeneration(request)) {
    return enqueue<InferenceRequest>(queue, { ...terms, request, encode: encodeInference, under: request.under });
  }
  const under = (model: ServedModel): GenerationRequest => ({ ...request, model });
  return enqueue(queue, { ...terms, request, ...generationFrames(queue), under });
}

/** How long the answer may take after the deadline of its first part, in ms. */
function restOf(request: StreamingRequest): number | undefined {
  return isGeneration(request) ? request.spec.restMs : undefined;
}

/**
 * How the requests of this gateway become frames for the worker. Two uses of one key may differ in
 * the labels and the share, which a deployment may change between them.
 * @param labels for which the worker publishes the records as well, as tokens
 */
export function generationFrames(
  queue: EnqueueSettings,
  labels: readonly string[] = [],
): Pick<QueueEntry<GenerationRequest>, "encode"> & { readonly digested: (request: GenerationRequest) => Buffer } {
  return {
    encode: (request, facts) => {
      const share = { level: request.queue?.level ?? 1, weight: weightOf(queue, request) ?? 1 };
      return encodeGeneration(request, { labels, share, facts });
    },
    digested: (request) => encodeGeneration(request),
  };
}

/** Makes the request to a tensor model as the worker reads it. */
export function encodeInference(request: InferenceRequest, beside?: FrameMeta): Buffer {
  return encodeFrame({ ...inferenceMeta(request), ...beside }, request.inputs);
}

/** The facts that travel with the inputs. JSON has no bigints, so they become texts. */
function inferenceMeta({ outputs, parameters, sampling }: InferenceRequest) {
  const custom = Object.entries(parameters).map(([k, v]) => [k, typeof v === "bigint" ? String(v) : v]);
  return {
    outputs,
    ...(custom.length > 0 && { parameters: Object.fromEntries(custom) as Record<string, unknown> }),
    ...(sampling && { sampling }),
  };
}

/** What lies beside the generation in its frame. */
interface BesideSpec {
  readonly labels?: readonly string[];
  readonly share?: GenerationShare;
  readonly facts?: FrameMeta | undefined;
}

/** Makes the request as the worker reads it. */
export function encodeGeneration(
  { spec }: GenerationRequest,
  { labels = [], share = { level: 1, weight: 1 }, facts }: BesideSpec = {},
): Buffer {
  const isUsual = share.level === 1 && share.weight === 1;
  const beside = { ...(labels.length > 0 && { labels }), ...(!isUsual && { share }), ...facts };
  return encodeFrame({ generation: spec, ...beside }, []);
}

/** A generation that Redis has, or may have. */
interface Admitted {
  readonly address: RequestAddress;
  /** How long Redis keeps the outcome, in ms. */
  readonly ttlMs: number;
}

/**
 * No client waits for this, so Redis has the whole grace period to answer. After that the stream's
 * worker ends the request by itself.
 */
async function cancel(settings: GenerateSettings, { address, ttlMs }: Admitted): Promise<void> {
  const { queue, bus, deadlines, graceMs } = settings;
  const message = errorKinds.cancelled.texts.byClient;
  const ending = { code: "cancelled", message, ttlMs, stream: true } as const;
  const counted = ({ ends, ms }: EndedRequest) => ends.cancelled("client_left", ms);
  await endRequest({ redis: queue.redis, bus }, address, ending, { budgetMs: graceMs, counted });
  deadlines.remove(address);
}

function openStream(settings: GenerateSettings, admitted: Admitted, isNew: boolean): OpenStream {
  const { relay } = settings;
  const { address } = admitted;
  return {
    id: encodeRequestId(address),
    isRepeated: !isNew,
    read: (from, signal) =>
      (isNew && from === 0 ? Cursor.fresh(relay, address) : Cursor.at(relay, address, from)).pages(signal),
    cancel: () => cancel(settings, admitted),
  };
}
