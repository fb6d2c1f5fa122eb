/** What every front door hands on and gets back: protocols differ only before and after these types. */
import type { ErrorCode } from "#shared/errors.js";
import type { SequenceStep } from "#shared/contract/sequence.js";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { GenerationSpec } from "#shared/contract/generation.js";
import type { Tensor } from "#shared/frame.js";

export type ParameterValue = string | number | bigint | boolean;

export interface InferenceRequest {
  readonly model: ServedModel;
  readonly tenant: string;
  /** Undefined for stateless models. */
  readonly sequence: SequenceStep | undefined;
  /** Validated against the model, in the model's order. */
  readonly inputs: readonly Tensor[];
  /** Names of the outputs to compute; never empty. */
  readonly outputs: readonly string[];
  readonly parameters: Readonly<Record<string, ParameterValue>>;
  readonly idempotencyKey: string | undefined;
  readonly deadlineMs: number;
}

export type InferenceOutcome =
  | { readonly kind: "result"; readonly tensors: readonly Tensor[] }
  | { readonly kind: "error"; readonly code: ErrorCode; readonly message: string };

/** Admits a request, waits for its one outcome. Refusals before admission are outcomes too; it never rejects. */
export type Infer = (request: InferenceRequest) => Promise<InferenceOutcome>;

/** Admits a request whose client comes back for the outcome. @returns its public id @throws InferenceError when it is refused */
export type InferLater = (request: InferenceRequest) => Promise<string>;

export interface GenerationRequest {
  readonly model: ServedModel;
  readonly tenant: string;
  /** A turn of a conversation, or undefined. */
  readonly sequence: SequenceStep | undefined;
  readonly spec: GenerationSpec;
  readonly idempotencyKey: string | undefined;
  /** Of its first token; the spec may limit the rest. */
  readonly deadlineMs: number;
  /** Runs to its end whether or not anybody reads. */
  readonly background: boolean;
}

/** One record as its worker wrote it. */
export interface StreamRecord {
  readonly index: number;
  /** Of a `TokenRecord`. */
  readonly json: string;
  readonly final: boolean;
  /** Where all that the record says is one text of the only choice: that text, as JSON. Nearly every record is such a one, and needs no parsing. */
  readonly plainText: string | undefined;
}

/** An admitted request whose records can be read, by many readers at once. */
export interface OpenStream {
  /** Public id. */
  readonly id: string;
  /**
   * Records from index `from` to the final one, each once and in order, as many at a time as are there, then ends. A reader that falls behind holds no more than
   * what it was given last. Ends early when `signal` aborts.
   * @throws InferenceError `ahead_of_log`, `resume_window_passed`, `unknown_request` or, when Redis stays away, `unavailable`
   */
  read(from: number, signal: AbortSignal): AsyncIterable<readonly StreamRecord[]>;
  /** Ends the request at its next iteration, unless it has ended. */
  cancel(): Promise<void>;
}

/** Admits a generation. @throws InferenceError when it is refused */
export type Generate = (request: GenerationRequest) => Promise<OpenStream>;
