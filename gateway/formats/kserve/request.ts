/**
 * An inference request in the form that every transport of the v2 protocol passes on, before the
 * comparison with its model.
 */
import type { JsonObject } from "#shared/json/parse.js";
import type { Tensor } from "#shared/frame.js";
import type { RequestParameters } from "./parameters.js";

export interface ParsedInfer {
  /** The request's own id; empty if the client gives none. */
  readonly id: string;
  readonly parameters: RequestParameters;
  /**
   * The parameters of a generator, also of one in an ensemble, for which lists and objects have a
   * meaning, too. Empty for other models.
   */
  readonly textParameters: JsonObject;
  readonly inputs: readonly Tensor[];
  /** Empty if the client wants all. */
  readonly outputs: readonly RequestedOutput[];
}

export interface RequestedOutput {
  readonly name: string;
  /** Whether the client wants this output as bytes rather than JSON. */
  readonly binary: boolean;
  /** How many classes the client wants in place of the tensor; absent if it wants the tensor. */
  readonly classes?: number | undefined;
}

/** Most dimensions of a tensor. */
export const maxRank = 16;
/** Most inputs of a request. */
export const maxInputs = 1024;
/** Most bytes of a tensor. */
export const maxTensorBytes = 2 ** 31;

/**
 * Returns the prefix that Triton gives to a refusal of a request's inputs. Clients' logs and tests
 * look for this prefix.
 */
export function requestPrefix(id: string): string {
  return `[request id: ${id === "" ? "<id_unknown>" : id}] `;
}
