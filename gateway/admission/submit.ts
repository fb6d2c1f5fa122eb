/**
 * The journey of one inference through the gateway: await the reply, admit, answer; in that order.
 */
import type { Logger } from "pino";
import { readOutcome, type Outcome } from "#shared/contract/outcome.js";
import { encodeRequestId } from "#shared/contract/request-id.js";
import { InferenceError } from "#shared/errors.js";
import { decodeFrame, encodeFrame } from "#shared/frame.js";
import { outcomeKey } from "#shared/keys.js";
import type { Infer, InferenceOutcome, InferenceRequest, InferLater } from "../inference.js";
import type { Expected, PendingRequests } from "../replies/pending.js";
import { enter, keptMs, type Door, type Entered } from "./enter.js";
import { placeOf } from "./place.js";
import type { OutcomeSweeper } from "./sweep.js";

export interface SubmitSettings {
  readonly door: Door;
  readonly pending: PendingRequests;
  readonly sweeper: OutcomeSweeper;
  readonly outcomeTtlMs: number;
  /** Of requests whose client comes back for the outcome. */
  readonly resultTtlMs: number;
  readonly log: Logger;
}

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

export function laterSubmitter(settings: SubmitSettings): InferLater {
  return async (request) => {
    // Its outcome is awaited all the same: whoever admitted a request ends it when its deadline
    // passes.
    const { id, known, expected } = await admitted(settings, request, settings.resultTtlMs);
    if (known !== undefined) expected.forget();
    return id;
  };
}

async function submit(settings: SubmitSettings, request: InferenceRequest): Promise<Outcome> {
  const { key, known, repeated, expected } = await admitted(settings, request, settings.outcomeTtlMs);
  if (known !== undefined) {
    expected.forget();
    return known;
  }
  const settled = await expected.outcome;
  // Neither a client nor a call of our own can ask for this outcome again, so it need not stay for
  // its TTL.
  if (request.idempotencyKey === undefined && !repeated) settings.sweeper.discard(key);
  return settled;
}

interface Admitted {
  /** Public. */
  readonly id: string;
  /** Of the outcome. */
  readonly key: string;
  readonly expected: Expected;
  /** An outcome that was there before. */
  readonly known: Outcome | undefined;
  /** See `Entered`. */
  readonly repeated: boolean;
}

async function admitted(
  { door, pending }: SubmitSettings,
  request: InferenceRequest,
  ttlMs: number,
): Promise<Admitted> {
  const address = placeOf(request, door);
  const frame = encodeFrame(frameMeta(request), request.inputs);
  const outcomeTtlMs = keptMs(door, request, ttlMs);
  const key = outcomeKey(address.lane, address.request);
  const expected = pending.expect({ request: address.request, key, outcomeTtlMs, deadlineMs: request.deadlineMs });
  let entered: Entered;
  try {
    entered = await enter(door, { request, address, frame, outcomeTtlMs, attendedMs: 0 });
  } catch (error) {
    expected.forget();
    throw error;
  }
  expected.admitted();
  const outcome = entered.said === "known" ? entered.outcome : undefined;
  // A retry: the first try's worker answers the gateway that asked first, which may be gone.
  if (entered.said === "known" && outcome === undefined) pending.lookSoon(address.request);
  const known = outcome && readOutcome(outcome.kind, outcome.body);
  return { id: encodeRequestId(address), key, expected, known, repeated: entered.repeated };
}

function frameMeta({ outputs, parameters }: InferenceRequest) {
  const custom = Object.entries(parameters);
  if (custom.length === 0) return { outputs };
  return {
    outputs,
    parameters: Object.fromEntries(custom.map(([k, v]) => [k, typeof v === "bigint" ? String(v) : v])),
  };
}

function present(outcome: Outcome): InferenceOutcome {
  return outcome.kind === "result" ? { kind: "result", tensors: decodeFrame(outcome.body).tensors } : outcome;
}
