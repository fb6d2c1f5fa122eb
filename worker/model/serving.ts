/** A model as a lane runs it: what its configuration says, in the form that the batch loop needs. */
import type { Datatype } from "#shared/model/datatype.js";
import type { BatchLimits } from "../batch/plan.js";
import type { ModelHost } from "./host.js";

/** A control tensor, made for each request from its place in its sequence; spec/sequence-batching.md section 3. */
export type Control =
  | {
      readonly kind: "start" | "ready" | "end";
      readonly tensor: string;
      readonly datatype: Datatype;
      /** One element each, little-endian. */
      readonly values: { readonly no: Buffer; readonly yes: Buffer };
    }
  | { readonly kind: "corrid"; readonly tensor: string; readonly datatype: Datatype };

export interface StateSpec {
  readonly input: string;
  readonly output: string;
  readonly datatype: Datatype;
  /** Of one request, batch dimension (1) included where the model has one; what a sequence begins with. */
  readonly initialShape: readonly number[];
  readonly initial: Buffer;
}

export interface ServingModel {
  readonly name: string;
  readonly version: string;
  readonly batched: boolean;
  readonly limits: BatchLimits;
  readonly controls: readonly Control[];
  readonly states: readonly StateSpec[];
  /** Undefined for stateless models. */
  readonly maxIdleMs: number | undefined;
  readonly host: ModelHost;
}
