/** A request with all that a client sends, in the words of no protocol. */
import type { Ask } from "./ask.js";

export interface Call extends Ask {
  readonly parameters: Readonly<Record<string, boolean | number | bigint | string>>;
  readonly inputs: readonly CallInput[];
}

export interface CallInput {
  readonly name: string;
  readonly datatype: "INT32" | "INT64" | "FP32";
  readonly shape: readonly number[];
  readonly data: readonly (number | bigint)[];
}

/** The request without its content, as a history keeps it. */
export function askOf(call: Call): Ask {
  const { parameters: _, inputs: __, ...ask } = call;
  return ask;
}
