/**
 * Reads how a job has ended: its result, with the form in which the client asked for the result; or
 * its failure.
 */
import type { TokenRecord } from "#shared/contract/generation.js";
import { tokenRecord } from "#shared/contract/generation.js";
import { readOutcome, stepOf } from "#shared/contract/outcome.js";
import { fixedError, InferenceError } from "#shared/errors.js";
import { decodeFrame, type Tensor } from "#shared/frame.js";
import { parsePin, type Pin, type RequestAddress } from "#shared/queue/address.js";
import { readLogs } from "#shared/queue/admission/read-logs.js";
import { outcomeKey } from "#shared/queue/keys.js";
import type { JobView } from "#shared/queue/jobs/view.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { collectAnswer, type WholeAnswer } from "../generation/collect.js";
import type { Shown } from "./prepare.js";

/** How a job has ended. */
export type JobEnd = TensorResult | TextResult | JobFailure;

interface JobResult {
  /** As in the job's view. */
  readonly type: string;
  /** The request that has run the job. */
  readonly request: RequestAddress;
  /** The version of the model that has run the job. */
  readonly pin: Pin;
  /** When the job ended, in ms since 1970. */
  readonly at: number;
}

type ShownTensors = Extract<Shown, { readonly as: "tensors" }>;

export interface TensorResult extends JobResult {
  readonly kind: "tensors";
  readonly shown: ShownTensors;
  readonly tensors: readonly Tensor[];
  /** The number of the step in its sequence; undefined without a sequence. */
  readonly step: number | undefined;
}

export interface TextResult extends JobResult {
  readonly kind: "text";
  readonly shown: Exclude<Shown, ShownTensors>;
  readonly answer: WholeAnswer;
}

export interface JobFailure {
  readonly kind: "failure";
  /** As in the job's view. */
  readonly type: string;
  readonly error: InferenceError;
}

/** Whether Redis still kept the result of a completed job, at the time of the view. */
export function isKept(view: JobView): boolean {
  return (resultExpiresAt(view) ?? 0) > view.seenAt && (view.resultBytes > 0 || view.records > 0);
}

/** @returns ms since 1970; undefined if there is no result, or none yet */
export function resultExpiresAt({ state, endedAt, keptMs }: JobView): number | undefined {
  return state === "completed" && endedAt !== undefined ? endedAt + keptMs : undefined;
}

/** @param body of the error with which the job has ended */
export function failureOf({ type }: JobView, body: Buffer): JobFailure {
  const outcome = readOutcome("error", body);
  if (outcome.kind !== "error") throw new TypeError("a failure is stored as an error");
  return { kind: "failure", type, error: new InferenceError(outcome.code, outcome.message) };
}

/**
 * @param view of a job that has completed, and whose result Redis keeps
 * @param request the request that has run the job
 * @throws InferenceError `result_expired` if the result has gone meanwhile
 */
export async function readResult(
  redis: RedisClient,
  view: JobView,
  request: RequestAddress,
): Promise<TensorResult | TextResult> {
  const shown = JSON.parse(view.shown) as Shown;
  const result = { type: view.type, request, pin: parsePin(view.pin), at: view.endedAt ?? view.recordedAt };
  if (shown.as !== "tensors") {
    return { ...result, kind: "text", shown, answer: await wholeAnswer(redis, request, shown.choices) };
  }
  const body = await redis.hgetBuffer(outcomeKey(request), "body");
  if (body === null || body.length === 0) throw fixedError("result_expired", "usual");
  const { meta, tensors } = decodeFrame(body);
  return { ...result, kind: "tensors", shown, tensors, step: stepOf(meta) };
}

/** @throws InferenceError `result_expired` if the log is gone */
async function wholeAnswer(redis: RedisClient, address: RequestAddress, choices: number): Promise<WholeAnswer> {
  try {
    return await collectAnswer(logRecords(redis, address), choices);
  } catch (error) {
    // The log of a completed request has an end, unless the log is gone.
    if (error instanceof InferenceError && error.code === "cancelled") throw fixedError("result_expired", "usual");
    throw error;
  }
}

/** Reads a log page by page, so that the process serves other requests in between. */
async function* logRecords(redis: RedisClient, address: RequestAddress): AsyncGenerator<TokenRecord, void> {
  let from = 0;
  for (let more = true; more;) {
    const [page] = await readLogs(redis, [{ ...address, from }]);
    if (page?.said !== "records") return;
    for (const json of page.records) yield tokenRecord.parse(JSON.parse(json));
    from += page.records.length;
    more = page.more;
  }
}
