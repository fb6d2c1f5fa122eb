/**
 * What every protocol hands to admission and gets back from it: protocols differ only before and
 * after these types.
 */
import { InferenceError, type ErrorCode, type RefusalReason } from "#shared/errors.js";
import type { SequenceStep } from "#shared/contract/sequence.js";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { GenerationSpec } from "#shared/contract/generation.js";
import type { Tensor } from "#shared/frame.js";
import type { OpenStream } from "../stream/open-stream.js";

export type ParameterValue = string | number | bigint | boolean;

/** How a request waits in the queue, by the policies of its model. */
export interface QueueTerms {
  /** Its priority level, from 1, which goes first. */
  readonly level: number;
  /** If it has not begun to run after so many ms, it is refused; undefined for no limit. */
  readonly rejectMs: number | undefined;
  /** After so many ms it goes behind all others of its level; undefined: it never does. */
  readonly delayMs: number | undefined;
  /** It is refused where so many of its level wait; undefined for no limit. */
  readonly mostQueued: number | undefined;
}

/** What every request has, whatever it asks for. */
export interface AnyRequest {
  readonly model: ServedModel;
  readonly tenant: string;
  /** The step of a sequence, or the turn of a conversation; undefined for what has no memory. */
  readonly sequence: SequenceStep | undefined;
  /** A retry under the same key gets the outcome of the first try. */
  readonly idempotencyKey: string | undefined;
  /** How long the key is remembered, in ms; absent for as long as the deployment says. */
  readonly keyTtlMs?: number;
  /** How long after its admission the outcome must be there; for a generation, its first token. */
  readonly deadlineMs: number;
  /** Absent where its model has no queue policies. */
  readonly queue?: QueueTerms | undefined;
}

/** One run of a tensor model. */
export interface InferenceRequest extends AnyRequest {
  /**
   * The same request for the version that its sequence is pinned to: other versions may have other
   * inputs.
   * @throws InferenceError where the request does not fit that version
   */
  readonly under: (model: ServedModel) => InferenceRequest;
  /** They are validated against the model, and in the model's order. */
  readonly inputs: readonly Tensor[];
  /** Names of the outputs to compute; never empty. */
  readonly outputs: readonly string[];
  readonly parameters: Readonly<Record<string, ParameterValue>>;
}

export type InferenceOutcome =
  | {
      readonly kind: "result";
      readonly tensors: readonly Tensor[];
      readonly version: string;
      /** Which step of its sequence it was, counted from START; undefined without a sequence. */
      readonly step?: number | undefined;
    }
  | {
      readonly kind: "error";
      readonly code: ErrorCode;
      readonly message: string;
      /** Why a step was refused. */
      readonly reason?: RefusalReason | undefined;
    };

/** The error of an outcome, as it is thrown and rendered. */
export function refusalOf({ code, message, reason }: Extract<InferenceOutcome, { kind: "error" }>): InferenceError {
  return new InferenceError(code, message, { reason });
}

/** One generation. Its deadline is that of its first token; the spec may limit the rest. */
export interface GenerationRequest extends AnyRequest {
  readonly spec: GenerationSpec;
  /** Whether it runs to its end even if nobody reads it. */
  readonly background: boolean;
}

/** What protocols ask of admission. */
export interface Inference {
  /**
   * Admits a request and waits for its one outcome. It never rejects: a refusal before admission is
   * an outcome too.
   */
  infer(request: InferenceRequest): Promise<InferenceOutcome>;
  /**
   * Admits a request whose client comes back for the outcome.
   * @returns the request's public id
   * @throws InferenceError when the request is refused
   */
  inferLater(request: InferenceRequest): Promise<string>;
  /**
   * Admits a generation.
   * @throws InferenceError when the request is refused
   */
  generate(request: GenerationRequest): Promise<OpenStream>;
}
