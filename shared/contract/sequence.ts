/**
 * How clients name a sequence. As in Triton, the correlation ids 42 (a uint64) and "42" (a string)
 * are different sequences. A string may hold any character, so Baton encodes an id injectively for
 * Redis keys: `u42`, or `s` and the string in base64url.
 */
export type CorrelationId =
  { readonly kind: "uint64"; readonly value: bigint } | { readonly kind: "string"; readonly value: string };

/**
 * A request's place in a sequence: the sequence's id, and whether the request begins or ends the
 * sequence.
 */
export interface SequenceStep {
  readonly id: CorrelationId;
  readonly start: boolean;
  readonly end: boolean;
  /** Whether the request begins the sequence if none exists, as with START. Absent: no. */
  readonly mayBegin?: boolean;
  /** The number of this step, counted from START, which is 1; absent if the client gives none. */
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

/** The model of a sequence, as far as refusals name it. */
interface Owner {
  readonly name: string;
  readonly sequence?: { readonly firstStep?: string | undefined } | undefined;
}

/**
 * The subject of refusals of a sequence, in Triton's words: of an ensemble, the step that has
 * sequences refuses.
 */
export function refuserOf({ name, sequence }: Owner): { readonly where: string; readonly model: string } {
  const step = sequence?.firstStep;
  return step === undefined ? { where: "", model: name } : { where: `in ensemble '${name}', `, model: step };
}

/** Triton's message, word for word, because clients match on the text. */
export function startRequiredMessage(owner: Owner, id: CorrelationId): string {
  const { where, model } = refuserOf(owner);
  return `${where}inference request for sequence ${id.value} to model '${model}' must specify the START flag on the first request of the sequence`;
}
