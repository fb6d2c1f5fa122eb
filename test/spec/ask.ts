/** Short functions that ask a fleet over HTTP, one answer at a time. */

export interface Answer {
  readonly status: number;
  readonly error: string | undefined;
  readonly code: string | undefined;
  /** The data of each output, by name. */
  readonly outputs: Readonly<Record<string, readonly unknown[]>>;
}

interface Body {
  readonly error?: string;
  readonly code?: string;
  readonly outputs?: { readonly name: string; readonly data: readonly unknown[] }[];
}

export async function ask(
  url: string,
  model: string,
  request: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const body = typeof request === "string" ? request : JSON.stringify(request);
  const response = await fetch(`${url}/v2/models/${model}/infer`, { method: "POST", body, headers });
  const { error, code, outputs = [] } = (await response.json()) as Body;
  return {
    status: response.status,
    error,
    code,
    outputs: Object.fromEntries(outputs.map(({ name, data }) => [name, data])),
  };
}

export function input(name: string, datatype: string, shape: readonly number[], data: readonly unknown[]) {
  return { name, datatype, shape, data };
}

/** One step of `chain`, or of a model that computes the same. */
export function step(sequence: number | string, value: number, flags: { start?: boolean; end?: boolean } = {}) {
  return {
    parameters: { sequence_id: sequence, sequence_start: flags.start ?? false, sequence_end: flags.end ?? false },
    inputs: [input("INPUT", "INT64", [1, 1], [value])],
  };
}
