/**
 * Puts a request into its queue: makes the arguments of the admission script, makes a step anew if
 * its sequence continues under another version, and says in words why Redis refused a request.
 */
import { createHash } from "node:crypto";
import { encodeCorrelationId, startRequiredMessage } from "#shared/contract/sequence.js";
import { usageMeta } from "#shared/contract/usage.js";
import { jobMeta } from "#shared/contract/job-meta.js";
import { waitMeta } from "#shared/contract/wait.js";
import type { FrameMeta } from "#shared/frame.js";
import { pinOf, requestName, sequenceName, type Pin, type RequestAddress } from "#shared/queue/address.js";
import type { ServedModel } from "#shared/contract/announcement.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import type { RedisClient } from "#shared/redis/connect.js";
import type { Admission, Applicant } from "#shared/queue/admission/admit.js";
import { noteTrace } from "#shared/queue/admission/note-trace.js";
import { adopt } from "#shared/queue/sequences/adopt.js";
import type { PastReason } from "#shared/queue/pieces/past.js";
import { bytesOf, type JobPart } from "#shared/queue/pieces/job.js";
import { usualTerms, type WaitingTerms } from "#shared/queue/pieces/parking.js";
import type { LimitName, OwnerLimit, QueueLimits } from "#shared/queue/admission/limits.js";
import { passed } from "#shared/stages.js";
import { realWorld } from "#shared/world.js";
import { AdmitSpan } from "../trace/admit-span.js";
import type { AdmissionBatcher } from "./batcher.js";
import type { Place, Unwritable } from "./call-line.js";
import { countAdmission } from "./counts.js";
import { isGeneration, type AnyRequest } from "./inference.js";
import type { QueueLoads, SequenceLimit } from "./loads.js";
import { queueFull } from "./queue-full.js";
import type { AddressTerms } from "./request-id.js";
import { tokenChargeOf } from "./token-charge.js";
import { readyWindow } from "./window.js";

/** Finds the models that sequences are pinned to. */
export interface PinnedModels {
  /** @returns undefined if no worker has served this pin lately */
  pinned(model: string, pin: Pin): ServedModel | undefined;
  /** @returns undefined if no served version takes the states of this pin */
  heir(model: string, pin: Pin): ServedModel | undefined;
  /**
   * How many requests all workers of a model hold at once. Nothing is parked if the number is not
   * known.
   */
  takenAtOnce?(model: ServedModel): number | undefined;
}

export interface EnqueueSettings extends AddressTerms {
  readonly redis: RedisClient;
  readonly models: PinnedModels;
  readonly batcher: AdmissionBatcher;
  /** The load of the queue. Undefined if the queue has no limit but Redis's memory. */
  readonly loads?: QueueLoads;
  /** Refusals name these limits. */
  readonly limits?: QueueLimits;
  /** How long Redis remembers an `Idempotency-Key`, in ms. */
  readonly idempotencyTtlMs: number;
  /**
   * The shares of tenants while requests have to wait; a tenant without an entry has 1. Undefined
   * if the deployment sets none: then the shares stay as they are.
   */
  readonly weights?: ReadonlyMap<string, number> | undefined;
}

/** One request on its way to the queue. */
export interface QueueEntry<Request extends AnyRequest> {
  readonly request: Request;
  readonly address: RequestAddress;
  /**
   * Makes the request as the worker reads it.
   * @param beside facts that two uses of one Idempotency-Key need not have in common
   */
  readonly encode: (request: Request, beside?: FrameMeta) => Buffer;
  /**
   * The part of the frame that two uses of one Idempotency-Key have in common; absent if that is
   * all but the facts beside it.
   */
  readonly digested?: ((request: Request) => Buffer) | undefined;
  /** Makes the same request for another version of its model. */
  readonly under: (model: ServedModel) => Request;
  /** How long Redis keeps the outcome, in ms. */
  readonly outcomeTtlMs: number;
  /**
   * A stream counts as wanted for this many ms without a reader. With 0 the request runs to its end
   * even without a reader. Undefined for a request without a stream whose client waits.
   */
  readonly attendedMs: number | undefined;
  /** Absent for a request that runs no job. */
  readonly job?: JobEntry | undefined;
}

/** A job's data beside its request. */
export interface JobEntry {
  readonly part: JobPart;
  /** All that makes two uses of one key the same job, except for its frame and its sequence. */
  readonly asked: string;
  /** The job's labels, as tokens, if workers publish the records of its stream for each label. */
  readonly labels: readonly string[];
}

/** Redis admitted the request now, or an earlier try under the same key. */
export type Enqueued = (
  | { readonly said: "admitted" }
  | { readonly said: "known"; readonly outcome: { readonly kind: string; readonly body: Buffer } | undefined }
) & {
  /** The version of the model that answers the request. */
  readonly version: string;
};

/**
 * How long Redis keeps the outcome, in ms: a retry under its key must find the outcome for as long
 * as Redis remembers the key.
 */
export function outcomeTtlOf(
  { idempotencyTtlMs }: EnqueueSettings,
  { idempotencyKey, keyTtlMs = idempotencyTtlMs }: AnyRequest,
  usualMs: number,
): number {
  return idempotencyKey === undefined ? usualMs : Math.max(keyTtlMs, usualMs);
}

/**
 * How often a request may turn out to belong to another version of the model than expected. Each
 * time the sequence has begun anew in between.
 */
const MOST_VERSIONS = 5;

/** How long a request in a Cluster comes again for the room that other buckets leave, in ms. */
const ROOM_BUDGET_MS = 1_000;
/** Before a refusal, the gateway asks buckets again whose last answer is older than this, in ms. */
const LATELY_MS = 100;

/** Does the work of `decideOn`, and makes the span of a sampled request. */
export async function enqueue<Request extends AnyRequest>(
  queue: EnqueueSettings,
  entry: QueueEntry<Request>,
): Promise<Enqueued> {
  const { request, address } = entry;
  if (request.trace === undefined) return decideOn(queue, entry);
  const span = new AdmitSpan(request.trace);
  try {
    const enqueued = await decideOn(queue, entry, span);
    span.end(request, address);
    if (enqueued.said === "admitted" && isGeneration(request)) {
      // A later reader of the stream has a trace of its own, and links to this trace.
      noteTrace(queue.redis, address, span.ids).catch(() => undefined);
    }
    return enqueued;
  } catch (error) {
    span.end(request, address, error);
    throw error;
  }
}

/**
 * Tries a step for the version that its sequence should have. If the sequence began with another
 * version, which only Redis knows, the step is made anew for that version.
 * @throws InferenceError if Redis refuses the request, or `outcome_unknown` if Redis stays away and
 * may have admitted the request
 */
async function decideOn<Request extends AnyRequest>(
  queue: EnqueueSettings,
  entry: QueueEntry<Request>,
  span?: AdmitSpan,
): Promise<Enqueued> {
  try {
    const enqueued = await tryToEnqueue(queue, entry, span);
    countAdmission(entry.request.model, enqueued.said);
    return enqueued;
  } catch (error) {
    if (error instanceof InferenceError) countAdmission(entry.request.model, "refused");
    throw error;
  }
}

async function tryToEnqueue<Request extends AnyRequest>(
  queue: EnqueueSettings,
  entry: QueueEntry<Request>,
  span: AdmitSpan | undefined,
): Promise<Enqueued> {
  let { request } = entry;
  let applicant = applicantOf(queue, entry, request, span);
  passed("checked", [applicant], requestName);
  const place = queue.batcher.nextPlace();
  for (let versions = 1; versions <= MOST_VERSIONS;) {
    const admission = await admitInTurn(queue.batcher, applicant, place);
    span?.heard(admission.said);
    switch (admission.said) {
      case "admitted":
        request.budget?.admitted(admission.rates);
        return { said: "admitted", version: request.model.version };
      case "known":
        request.budget?.admitted(admission.rates);
        return { said: "known", outcome: admission.outcome, version: admission.pin.version };
      case "too-soon":
        throw tooSoon(request, admission);
      case "over-quota":
        throw overQuota(request, admission);
      case "too-many": {
        const owner = request.budget?.generations?.find(({ name }) => name === admission.name);
        if (owner !== undefined && (await comesAgain(queue, owner, applicant, place))) break;
        throw tooMany(request, admission.name);
      }
      case "pinned": {
        const { pin } = admission;
        const model = queue.models.pinned(request.model.name, pin) ?? (await inherit(queue, applicant, place, pin));
        if (model === undefined) throw versionRetired(request, pin);
        request = entry.under(model);
        applicant = applicantOf(queue, entry, request, span);
        versions++;
        break;
      }
      case "held-back":
        break;
      case "start-required":
        // The sequence was pinned to another version, and has ended since the step was made for it.
        if (request === entry.request || entry.request.sequence?.mayBegin !== true) {
          throw startRequired(request, admission.why);
        }
        request = entry.request;
        applicant = applicantOf(queue, entry, request, span);
        versions++;
        break;
      case "forgotten":
        throw fixedError("outcome_unknown", "admission");
      case "failed":
        throw fixedError("outcome_unknown", "admission", { cause: new Error(admission.why) });
      case "ahead":
      case "behind":
        throw wrongStep(request, admission);
      case "queue-full":
        if (admission.limit === "level") throw fixedError("queue_full", "usual");
        if (await comesAgain(queue, admission.limit, applicant, place)) break;
        throw queueFull(admission.limit, request, bytesOf(applicant), queue.limits, leavesRoom(queue, applicant));
      case "too-many-sequences":
        if (await comesAgain(queue, "sequences", applicant, place)) break;
        throw fixedError("sequence_limit", "usual");
      case "too-many-of-tenant":
        if (await comesAgain(queue, "tenant-sequences", applicant, place)) break;
        throw request.budget?.oneSequenceTooMany() ?? fixedError("sequence_limit", "usual");
      default:
        throw refusal(admission.said);
    }
  }
  throw fixedError("unavailable", "queue");
}

function applicantOf<Request extends AnyRequest>(
  queue: EnqueueSettings,
  { address, encode, digested, outcomeTtlMs, attendedMs, job }: QueueEntry<Request>,
  request: Request,
  span: AdmitSpan | undefined,
): Applicant {
  const { idempotencyKey, deadlineMs, sequence, model } = request;
  const usage = usageOf(request);
  // No model may begin a request after this time, even if its client waits for longer.
  const waitMs = Math.min(deadlineMs, request.queue?.rejectMs ?? deadlineMs);
  const facts = { ...usageMeta(usage?.key), ...waitMeta(waitMs), ...span?.meta(request) };
  const frame = encode(request, job === undefined ? facts : { ...facts, ...jobMeta });
  const common = () => (digested ?? encode)(request);
  const digest = idempotencyKey === undefined ? "" : requestDigest(request, common(), job?.asked);
  return {
    lane: { bucket: address.bucket, model: model.name, ...pinOf(model) },
    tenant: address.tenant,
    request: address.request,
    frame,
    digest,
    outcomeTtlMs,
    deadlineMs: waitMs,
    attendedMs,
    window: readyWindow(queue.models.takenAtOnce?.(model), queue.buckets),
    waiting: waitingTerms(queue, request),
    sequence: sequence && {
      name: sequenceName(address.tenant, encodeCorrelationId(sequence.id)),
      start: sequence.start,
      end: sequence.end,
      mayBegin: sequence.mayBegin,
      number: sequence.number,
    },
    job: job?.part,
    rates: request.budget?.ratesOf(isGeneration(request) ? () => tokenChargeOf(request) : undefined),
    queued: request.budget?.queued,
    liveSequences: request.budget?.liveSequences,
    owners: isGeneration(request) ? request.budget?.generations : undefined,
    usage,
    quotas: request.budget?.quotas,
    called: span?.called,
  };
}

function usageOf(request: AnyRequest): Applicant["usage"] {
  const usage = request.budget?.usage;
  if (usage === undefined || !isGeneration(request)) return usage;
  const { prompt, choices } = tokenChargeOf(request);
  return { ...usage, generation: { prompt, choices } };
}

/**
 * Lets a sequence whose version no worker serves continue under a version that takes its states.
 * @returns the model to make the step anew for; undefined if there is no such version
 */
async function inherit(
  { redis, models, batcher }: EnqueueSettings,
  applicant: Applicant,
  place: Place,
  pin: Pin,
): Promise<ServedModel | undefined> {
  const { lane, sequence } = applicant;
  const heir = models.heir(lane.model, pin);
  if (heir === undefined || sequence === undefined) return undefined;
  try {
    // If the sequence has yet another pin by now, the next try of the step returns that pin.
    const { name } = sequence;
    const adopting = () => adopt(redis, { bucket: lane.bucket, model: lane.model, name }, pin, pinOf(heir));
    await batcher.prepare(applicant, place, adopting);
  } catch (cause) {
    throw fixedError("unavailable", "queue", { cause });
  }
  return heir;
}

/** The share of the request's tenant; undefined if nobody has set one. */
export function weightOf({ weights }: EnqueueSettings, { tenant, budget }: AnyRequest): number | undefined {
  return budget?.weight ?? (weights && (weights.get(tenant) ?? 1));
}

/**
 * Splits a level's limit evenly between the buckets, because a script sees only its own bucket.
 * Each bucket has at least one place, so all together may have somewhat more.
 */
function waitingTerms(settings: EnqueueSettings, request: AnyRequest): WaitingTerms | undefined {
  const weight = weightOf(settings, request);
  const { queue } = request;
  if (queue === undefined) return weight === undefined ? undefined : { ...usualTerms, weight };
  const { level, delayMs, mostQueued } = queue;
  return { level, weight, delayMs, mostParked: mostQueued && Math.ceil(mostQueued / settings.buckets) };
}

/**
 * Whether a bucket of a Cluster may have room now for a request after a refusal: other buckets
 * leave some of the limit, and the bucket gets a part of that with each call. While the gateway
 * asks the other buckets, later steps of the same sequence wait behind this step.
 */
async function comesAgain(
  { loads, batcher, world = realWorld }: EnqueueSettings,
  limit: LimitName | SequenceLimit | OwnerLimit,
  applicant: Applicant,
  place: Place,
): Promise<boolean> {
  if (loads === undefined || world.now() - place.since > ROOM_BUDGET_MS) return false;
  const { lane, tenant, queued, liveSequences } = applicant;
  const isJob = applicant.job !== undefined;
  const one = { model: lane.model, tenant, bytes: bytesOf(applicant), isJob, queued, liveSequences };
  if (loads.hasRoom(limit, one)) return true;
  const { owners } = applicant;
  const sequences = limit === "tenant-sequences" ? new Map([[tenant, liveSequences ?? 0]]) : undefined;
  const heard = loads.prepare({ models: [lane.model], tenants: [tenant], owners, sequences }, LATELY_MS);
  if (heard === undefined) return false;
  await batcher.prepare(applicant, place, () => heard);
  return loads.hasRoom(limit, one);
}

function leavesRoom({ limits }: EnqueueSettings, { job }: Applicant): boolean {
  return job !== undefined || limits?.leavesRoom === true;
}

async function admitInTurn(batcher: AdmissionBatcher, applicant: Applicant, place: Place) {
  try {
    return await batcher.admit(applicant, place);
  } catch (cause) {
    if (cause instanceof TypeError) throw cause;
    throw fixedError("outcome_unknown", "admission", { cause });
  }
}

/** Digests all that makes two uses of one key the same request. */
export function requestDigest({ sequence, deadlineMs }: AnyRequest, frame: Buffer, asked?: string): string {
  const step = sequence && [encodeCorrelationId(sequence.id), sequence.start, sequence.end];
  return createHash("sha256")
    .update(JSON.stringify([step ?? null, asked ?? deadlineMs]))
    .update(frame)
    .digest("base64url");
}

/** No served version can continue the sequence, so the client has to begin anew. */
function versionRetired({ model, sequence }: AnyRequest, { version }: Pin): InferenceError {
  const id = sequence === undefined ? "" : `'${sequence.id.value}' `;
  return new InferenceError(
    "version_retired",
    `sequence ${id}of model '${model.name}' began with version ${version}, which is served no longer as it was then; ` +
      "begin it anew with the START flag",
  );
}

/** @returns the refusal of a request whose owner has sent too many before */
export function tooSoon(
  { budget }: AnyRequest,
  { name, waitUs }: Omit<Extract<Admission, { said: "too-soon" }>, "said">,
): InferenceError {
  if (budget === undefined) throw new TypeError("a request without a budget cannot come too soon");
  return budget.refused(name, waitUs);
}

function tooMany({ budget }: AnyRequest, name: string): InferenceError {
  if (budget === undefined) throw new TypeError("a request without a budget cannot be one too many");
  return budget.oneTooMany(name);
}

function overQuota(
  { budget }: AnyRequest,
  { name, field }: Extract<Admission, { said: "over-quota" }>,
): InferenceError {
  if (budget === undefined) throw new TypeError("a request without a budget has no quota");
  return budget.usedUp(name, field);
}

/** The client names a step that is not the next step of the sequence. */
function wrongStep({ model, sequence }: AnyRequest, { said, number }: WrongStep): InferenceError {
  if (sequence?.number === undefined) throw new TypeError("a request that names no step cannot name a wrong one");
  const request = `the request is step ${sequence.number} of sequence ${sequence.id.value} of model '${model.name}'`;
  return said === "ahead"
    ? new InferenceError(
        "ahead_of_state",
        `${request}, but the next step of that sequence is ${number}: ` +
          `the fleet does not have the state that step ${sequence.number} continues`,
      )
    : new InferenceError(
        "behind_of_state",
        `${request}, which was taken already: the next step of that sequence is ${number}`,
      );
}

type WrongStep = Extract<Admission, { readonly said: "ahead" | "behind" }>;
type Refused = Exclude<
  Admission["said"] | Unwritable["said"],
  | Enqueued["said"]
  | WrongStep["said"]
  | "pinned"
  | "too-soon"
  | "too-many"
  | "over-quota"
  | "held-back"
  | "forgotten"
  | "failed"
  | "queue-full"
  | "start-required"
  | "too-many-sequences"
  | "too-many-of-tenant"
>;

function startRequired({ model, sequence }: AnyRequest, reason: PastReason): InferenceError {
  if (sequence === undefined) throw new TypeError("a stateless request cannot lack START");
  return new InferenceError("sequence_start_required", startRequiredMessage(model, sequence.id), { reason });
}

function refusal(said: Refused): InferenceError {
  switch (said) {
    case "unwritable":
      return fixedError("unavailable", "queue");
    case "mismatch":
      return fixedError("idempotency_mismatch", "usual");
    case "backlog-full":
      return fixedError("sequence_backlog", "usual");
    case "job-changed":
      return fixedError("job_not_retryable", "usual");
  }
}
