/** Digests all that the answer to a request depends on, and the tenant that may read the answer. */
import { createHash } from "node:crypto";
import type { InferenceRequest } from "../admission/inference.js";

/**
 * Not part of it: ids, priorities and deadlines, and the form of the answer, such as JSON or
 * classes, which the gateway makes of the same tensors.
 */
export function answerDigest({ tenant, model, inputs, outputs, parameters }: InferenceRequest): string {
  const { name, version, digest } = model;
  // In JSON no two lists have the same text, and the lengths say where each input's bytes end.
  const head = JSON.stringify([
    [tenant, name, version, digest],
    inputs.map((input) => [input.name, input.datatype, input.shape, input.data.length]),
    outputs,
    Object.keys(parameters)
      .toSorted()
      .map((key) => [key, typeof parameters[key], String(parameters[key])]),
  ]);
  const hash = createHash("sha256").update(`${Buffer.byteLength(head)}:${head}`);
  for (const { data } of inputs) hash.update(data);
  return hash.digest("base64url");
}
