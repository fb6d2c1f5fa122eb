/**
 * How clients name a sequence. As in Triton, the correlation ids 42 (a uint64) and "42" (a string)
 * are different sequences. A string may hold any character, so an id is encoded injectively before
 * it becomes part of a Redis key: `u42`, or `s` and the string in base64url.
 */
export type CorrelationId =
  { readonly kind: "uint64"; readonly value: bigint } | { readonly kind: "string"; readonly value: string };

/** What a request says of its place in a sequence: which one, and whether it begins or ends it. */
export interface SequenceStep {
  readonly id: CorrelationId;
  readonly start: boolean;
  readonly end: boolean;
  /** It begins the sequence where there is none, as if it had START. Absent: it does not. */
  readonly mayBegin?: boolean;
  /**
   * The number of this step, counted from the sequence's START, which is 1; absent where the client
   * does not say.
   */
  readonly number?: number;
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

/** The message is Triton's, word for word: clients match on it. */
export function startRequiredMessage(model: string, id: CorrelationId): string {
  return `inference request for sequence ${id.value} to model '${model}' must specify the START flag on the first request of the sequence`;
}
