/**
 * An inference request as every transport of the v2 protocol hands it on, before it is compared
 * with its model.
 */
import type { JsonObject } from "#shared/json/parse.js";
import type { Tensor } from "#shared/frame.js";
import type { RequestParameters } from "./parameters.js";

export interface ParsedInfer {
  /** The request's own id; empty where it has none. */
  readonly id: string;
  readonly parameters: RequestParameters;
  /**
   * Parameters that a generator reads for itself, where lists and objects have a meaning, too.
   * Empty for other models.
   */
  readonly textParameters: JsonObject;
  readonly inputs: readonly Tensor[];
  /** Empty where all are wanted. */
  readonly outputs: readonly RequestedOutput[];
}

export interface RequestedOutput {
  readonly name: string;
  /** Whether the client wants it as bytes rather than JSON. */
  readonly binary: boolean;
}

/** Most dimensions of a tensor. */
export const maxRank = 16;
/** Most inputs of a request. */
export const maxInputs = 1024;
/** Most bytes of a tensor. */
export const maxTensorBytes = 2 ** 31;

/**
 * Returns what Triton begins with when it refuses the inputs of a request. Clients' logs and tests
 * look for it.
 */
export function requestPrefix(id: string): string {
  return `[request id: ${id === "" ? "<id_unknown>" : id}] `;
}
