/**
 * The types between protocols and admission. Protocols differ only before and after these types.
 */
import { InferenceError, type ErrorCode, type Limited, type RefusalReason } from "#shared/errors.js";
import type { SequenceStep } from "#shared/contract/sequence.js";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { GenerationSpec, SamplingSpec } from "#shared/contract/generation.js";
import type { Tensor } from "#shared/frame.js";
import type { RequestBudget } from "./budget.js";
import type { OpenStream } from "../stream/open-stream.js";
import type { AdmittingTrace } from "../trace/admit-span.js";

export type ParameterValue = string | number | bigint | boolean;

/** How a request waits in the queue, by the policies of its model. */
export interface QueueTerms {
  /** Priority level, from 1, which goes first. */
  readonly level: number;
  /** After so many ms without beginning to run, the request is refused; undefined: no limit. */
  readonly rejectMs: number | undefined;
  /** After so many ms the request goes behind all others of its level; undefined: never. */
  readonly delayMs: number | undefined;
  /** Most waiting requests of this level. Further requests are refused; undefined: no limit. */
  readonly mostQueued: number | undefined;
}

/** The members of every request. */
export interface AnyRequest {
  readonly model: ServedModel;
  readonly tenant: string;
  /** The step of a sequence, or the turn of a conversation; undefined for a stateless request. */
  readonly sequence: SequenceStep | undefined;
  /** A retry under the same key gets the outcome of the first try. */
  readonly idempotencyKey: string | undefined;
  /** How long Redis remembers the key, in ms; absent: as long as the deployment says. */
  readonly keyTtlMs?: number;
  /**
   * How long after its admission the outcome must be there, in ms; for a generation, the first
   * token.
   */
  readonly deadlineMs: number;
  /** Absent if its model has no queue policies. */
  readonly queue?: QueueTerms | undefined;
  /** Absent if its owner has no limits. */
  readonly budget?: RequestBudget | undefined;
  /** Absent for a request that is not sampled. */
  readonly trace?: AdmittingTrace | undefined;
}

/** A client that waits for an outcome, and may leave. */
export interface Client {
  readonly hasLeft: boolean;
  /**
   * @param leave called once, when the client leaves
   * @returns a function to call when nobody wants to know any more
   */
  onLeave(leave: () => void): () => void;
}

/** Whether the client can ask for the outcome again. */
export function isRepeatable({ idempotencyKey, sequence }: Pick<AnyRequest, "idempotencyKey" | "sequence">): boolean {
  return idempotencyKey !== undefined || sequence?.number !== undefined;
}

/** One run of a tensor model. */
export interface InferenceRequest extends AnyRequest {
  /**
   * The same request for the version that its sequence is pinned to, because other versions may
   * have other inputs.
   * @throws InferenceError if the request does not fit that version
   */
  readonly under: (model: ServedModel) => InferenceRequest;
  /** Validated against the model, and in the model's order. */
  readonly inputs: readonly Tensor[];
  /** Names of the outputs to compute; never empty. */
  readonly outputs: readonly string[];
  /** Absent if the request runs to its end even if its client leaves. */
  readonly client?: Client | undefined;
  readonly parameters: Readonly<Record<string, ParameterValue>>;
  /** How the generator of an ensemble samples; absent for other models. */
  readonly sampling?: SamplingSpec | undefined;
}

/** What is known of a request beside its outcome. */
export interface AdmittedAs {
  /** The public id; absent if the request was refused. */
  readonly id?: string | undefined;
  /** Whether the outcome is that of an earlier request under the same key. */
  readonly isRepeated?: boolean | undefined;
  /** The text of the worker's timings. */
  readonly note?: string | undefined;
}

export type InferenceOutcome = AdmittedAs &
  (
    | {
        readonly kind: "result";
        readonly tensors: readonly Tensor[];
        readonly version: string;
        /**
         * The number of the step in its sequence, counted from START; undefined without a sequence.
         */
        readonly step?: number | undefined;
      }
    | {
        readonly kind: "error";
        readonly code: ErrorCode;
        readonly message: string;
        /** Why the worker or the gateway refused a step. */
        readonly reason?: RefusalReason | undefined;
        /** The limit of the owner that refused the request. */
        readonly limited?: Limited | undefined;
      }
  );

/** The error of an outcome, as protocols throw and render it. */
export function refusalOf({
  code,
  message,
  reason,
  limited,
}: Extract<InferenceOutcome, { kind: "error" }>): InferenceError {
  return new InferenceError(code, message, { reason, limited });
}

/** One generation. Its deadline is the deadline of its first token; the spec may limit the rest. */
export interface GenerationRequest extends AnyRequest {
  readonly spec: GenerationSpec;
  /** Whether the generation runs to its end even without a reader. */
  readonly background: boolean;
}

/** A request to a decoupled tensor model, which any number of answers follow. */
export interface DecoupledRequest extends InferenceRequest {
  /** Whether it runs to its end even without a reader. */
  readonly background: boolean;
}

/** A request whose answers are records of a log. */
export type StreamingRequest = GenerationRequest | DecoupledRequest;

export function isGeneration(request: AnyRequest): request is GenerationRequest {
  return "spec" in request;
}

/** The calls that protocols make to admission. */
export interface Inference {
  /**
   * Admits a request and waits for its one outcome. Never rejects: a refusal before admission is an
   * outcome too.
   */
  infer(request: InferenceRequest): Promise<InferenceOutcome>;
  /**
   * Admits a request whose client comes back for the outcome.
   * @returns the request's public id
   * @throws InferenceError if the request is refused
   */
  inferLater(request: InferenceRequest): Promise<string>;
  /**
   * Admits a generation, or a request to a decoupled model.
   * @throws InferenceError if the request is refused
   */
  generate(request: StreamingRequest): Promise<OpenStream>;
}
