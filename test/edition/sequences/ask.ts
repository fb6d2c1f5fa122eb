/** Asks for sequences as things over HTTP, as one tenant, and takes their steps. */

/** These fleets read the tenant from this header. */
export const TENANT_HEADER = "X-Tenant";

export interface Described {
  readonly sequence_id: number | string;
  readonly state: string;
  readonly step: number;
  readonly waiting: number;
  readonly last_step_at: string | null;
  readonly idle_deadline: string | null;
  readonly worker: string | null;
  readonly version: string;
  readonly state_bytes: number;
  readonly checkpoints: readonly number[];
}

export interface Told {
  readonly status: number;
  readonly body: Partial<Described> & {
    readonly code?: string;
    readonly error?: string;
    readonly reason?: string;
    readonly outputs?: { readonly name: string; readonly data: readonly number[] }[];
    readonly sequences?: readonly Described[];
    readonly next?: string;
  };
}

export interface Manner {
  readonly body?: object | Buffer;
  readonly key?: string;
  readonly tenant?: string;
}

function headersOf({ key, tenant = "acme" }: Manner): Record<string, string> {
  return { [TENANT_HEADER]: tenant, ...(key !== undefined && { "idempotency-key": key }) };
}

/** @param path behind the name of the model, such as `/sequences/3` */
export async function ask(method: string, url: string, path: string, manner: Manner = {}): Promise<Told> {
  const { body } = manner;
  const sent = body === undefined || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const init = { method, headers: headersOf(manner), ...(sent !== undefined && { body: sent }) };
  const answer = await fetch(`${url}/v2/models/${path}`, init);
  return { status: answer.status, body: (await answer.json()) as Told["body"] };
}

/** Reads the frame of a checkpoint. */
export async function exported(url: string, path: string): Promise<Buffer> {
  const answer = await fetch(`${url}/v2/models/${path}`, { headers: headersOf({}) });
  if (answer.status !== 200) throw new Error(await answer.text());
  if (answer.headers.get("content-type") !== "application/octet-stream") throw new Error("no octets");
  return Buffer.from(await answer.arrayBuffer());
}

export interface StepFlags {
  readonly start?: boolean;
  readonly end?: boolean;
  readonly tenant?: string;
}

/** Takes a step of a model whose only input is INPUT, [1, 1]. */
export async function step(
  url: string,
  model: string,
  sequence: number | string,
  value: number,
  { start = false, end = false, ...manner }: StepFlags = {},
): Promise<Told & { readonly output: number | undefined }> {
  const datatype = model === "accumulate" ? "INT32" : "INT64";
  const told = await ask("POST", url, `${model}/infer`, {
    ...manner,
    body: {
      parameters: { sequence_id: sequence, sequence_start: start, sequence_end: end },
      inputs: [{ name: "INPUT", datatype, shape: [1, 1], data: [value] }],
    },
  });
  return { ...told, output: told.body.outputs?.find(({ name }) => name === "OUTPUT")?.data[0] };
}

/** Takes steps of a sequence of `accumulate`, the first with START. */
export async function steps(url: string, sequence: number, ...values: readonly number[]): Promise<void> {
  for (const [i, value] of values.entries()) {
    const { status, body } = await step(url, "accumulate", sequence, value, { start: i === 0 });
    if (status !== 200) throw new Error(JSON.stringify(body));
  }
}

/** The sum that the next step of a sequence of `accumulate` gives. */
export async function sum(url: string, sequence: number, value: number): Promise<number | string | undefined> {
  const { output, body } = await step(url, "accumulate", sequence, value);
  return output ?? body.code;
}

/** Looks again and again while the work is under way, until a look says that it has seen enough. */
export async function lookDuring(work: Promise<unknown>, look: () => Promise<boolean>): Promise<void> {
  const state = { isOver: false };
  const over = work.finally(() => (state.isOver = true));
  while (!state.isOver && !(await look()));
  await over;
}
