/**
 * Asks a gateway over HTTP, one answer at a time. A missing answer counts as an answer, too, so
 * that a test names the request instead of running into its own limit.
 */

export interface Said {
  /** The HTTP status; 0 if no answer came. */
  readonly status: number;
  readonly code?: string;
  /** The words of a refusal, or why there was no answer. */
  readonly error?: string;
  /** The output of a model whose output is a single number. */
  readonly output?: number;
  /** The version of the model that answered. */
  readonly version?: string;
}

interface Body {
  readonly error?: string;
  readonly code?: string;
  readonly model_version?: string;
  readonly outputs?: { readonly name: string; readonly data: readonly number[] }[];
}

/** Far longer than any answer takes. */
const PATIENCE_MS = 20_000;

export interface Manner {
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds to wait for an answer. */
  readonly patienceMs?: number;
}

/** @param url with the path, such as `/v2/models/simple/infer` */
export async function ask(
  url: string,
  body: object,
  { headers = {}, patienceMs = PATIENCE_MS }: Manner = {},
): Promise<Said> {
  try {
    const signal = AbortSignal.timeout(patienceMs);
    const answer = await fetch(url, { method: "POST", body: JSON.stringify(body), headers, signal });
    const { error, code, outputs, model_version: version } = (await answer.json()) as Body;
    const output = outputs?.find(({ name }) => name.startsWith("OUTPUT"))?.data[0];
    const said = { error, code, output, version };
    return { status: answer.status, ...Object.fromEntries(Object.entries(said).filter(([, v]) => v !== undefined)) };
  } catch (error) {
    return { status: 0, error: error instanceof Error ? error.message : String(error) };
  }
}

export interface Step {
  readonly sequence: number;
  readonly value: number;
  readonly start?: boolean;
  readonly end?: boolean;
  /** The `Idempotency-Key`. */
  readonly key?: string;
  /** A KServe parameter, beside those of the sequence. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

/** The body of one step of `accumulate`, or of a model with its input. */
export function stepBody({ sequence, value, start = false, end = false, parameters = {} }: Step): object {
  return {
    parameters: { sequence_id: sequence, sequence_start: start, sequence_end: end, ...parameters },
    inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [value] }],
  };
}

/** Adds to a sequence of `accumulate`; the output is the sum so far. */
export function add(url: string, step: Step, patienceMs = PATIENCE_MS): Promise<Said> {
  const headers = step.key === undefined ? {} : { "idempotency-key": step.key };
  return ask(`${url}/v2/models/accumulate/infer`, stepBody(step), { headers, patienceMs });
}

/** One request to `simple`, whose first output is `value` added to itself. */
export function simple(
  url: string,
  value: number,
  parameters: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Said> {
  const tensor = (name: string) => ({ name, datatype: "INT32", shape: [1, 16], data: Array(16).fill(value) });
  return ask(
    `${url}/v2/models/simple/infer`,
    { parameters, inputs: [tensor("INPUT0"), tensor("INPUT1")] },
    { headers },
  );
}
