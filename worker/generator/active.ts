/** A request between its arrival at this worker and its end here. */
import { generationSpec, type GenerationSpec } from "#shared/contract/generation.js";
import type { InferenceError } from "#shared/errors.js";
import { DEFAULT_TENANT } from "#shared/keys.js";
import type { Held } from "../intake/hand.js";
import type { NewGeneration } from "./protocol.js";

export interface Active {
  readonly held: Held;
  /** Suspects were another worker's, or ours before a cut. */
  readonly how: "fresh" | "suspect";
  readonly spec: GenerationSpec;
  readonly tenant: string;
  /** Index of the record that the engine gives next; -1 while the log has not been read. */
  next: number;
  /** When the engine last gave a record, on `performance.now()`'s clock. */
  heardAt: number;
  /** It has ended here, or is another's; what the engine still says of it is not heard. */
  closed: boolean;
}

export function activate(held: Held, how: Active["how"]): Active {
  const { generation, tenant } = held.request.meta;
  return {
    held,
    how,
    spec: generationSpec.parse(generation),
    tenant: typeof tenant === "string" ? tenant : DEFAULT_TENANT,
    next: -1,
    heardAt: performance.now(),
    closed: false,
  };
}

/**
 * When it is too late for this request, on `performance.now()`'s clock. Its deadline is that of its
 * first token: a stream that has one goes on to its end, whoever computes it, unless its client
 * limited the whole answer.
 */
export function expiryOf({ held, spec, next }: Pick<Active, "held" | "spec" | "next">): number {
  if (next <= 0) return held.expiresAt;
  return spec.restMs === undefined ? Infinity : held.expiresAt + spec.restMs;
}

/** How a request goes on after its arrival was looked into. */
export type Prepared =
  /** @field standsSince when a stream that was another worker's last moved, in Redis ms */
  | { readonly kind: "run"; readonly generation: NewGeneration; readonly standsSince: number }
  /** Refused before its first token, or not wanted any more. */
  | { readonly kind: "refuse"; readonly error: InferenceError; readonly next: number }
  /** Another worker wrote its final record and did not come to commit what it says. @field history prompt and output, for a conversation */
  | { readonly kind: "sealed"; readonly records: readonly string[]; readonly history: Int32Array | undefined }
  /** It has an outcome; only its entry is left. */
  | { readonly kind: "ended" }
  /** Not ours any more, or nobody can tell now. */
  | { readonly kind: "drop" };
