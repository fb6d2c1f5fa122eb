/**
 * How a sequence is named. uint64 42 and string "42" are different sequences (spec/sequence-batching.md section 2), and a client's
 * string may hold any character, so the name is encoded injectively before it becomes part of a Redis key.
 */
export type CorrelationId =
  { readonly kind: "uint64"; readonly value: bigint } | { readonly kind: "string"; readonly value: string };

export interface SequenceStep {
  readonly id: CorrelationId;
  readonly start: boolean;
  readonly end: boolean;
}

export function encodeCorrelationId(id: CorrelationId): string {
  return id.kind === "uint64" ? `u${id.value}` : `s${Buffer.from(id.value, "utf8").toString("base64url")}`;
}

export function decodeCorrelationId(encoded: string): CorrelationId {
  const rest = encoded.slice(1);
  return encoded.startsWith("u")
    ? { kind: "uint64", value: BigInt(rest) }
    : { kind: "string", value: Buffer.from(rest, "base64url").toString("utf8") };
}

/** Triton's words; clients match on them. */
export function startRequiredMessage(model: string, id: CorrelationId): string {
  return `inference request for sequence ${id.value} to model '${model}' must specify the START flag on the first request of the sequence`;
}
