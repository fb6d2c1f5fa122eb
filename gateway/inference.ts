/** What every front door hands on and gets back: protocols differ only before and after these types. */
import type { ErrorCode } from "#shared/errors.js";
import type { SequenceStep } from "#shared/contract/sequence.js";
import type { ServedModel } from "#shared/contract/announcement.js";
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
