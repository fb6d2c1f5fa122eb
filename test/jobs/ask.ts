/** Asks a gateway for jobs over HTTP. An answer that does not come in time is an error. */

const PATIENCE_MS = 20_000;
/** A job may wait for a worker that has to start. */
const END_MS = 60_000;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
  readonly text: string;
}

/** The members that tests read, of a view, of a refusal, and of a list. */
export interface Body {
  readonly id: string;
  readonly state: string;
  readonly type: string;
  readonly created_at: string;
  readonly run_at: string | null;
  readonly deadline: string | null;
  readonly queued_at: string | null;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly result_expires_at: string | null;
  readonly attempts_made: number;
  readonly position: number | null;
  readonly progress: { readonly tokens: number; readonly max_tokens: number | null } | null;
  readonly request_id: string | null;
  readonly result: Result | null;
  readonly error: string | { readonly code: string; readonly message: string } | null;
  readonly code: string;
  readonly data: readonly Body[];
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly has_more: boolean;
}

export interface Result {
  readonly outputs?: readonly { readonly name: string; readonly data: readonly number[] }[];
  readonly text_output?: string;
}

export interface Manner {
  readonly method?: string;
  readonly body?: object | string;
  readonly headers?: Readonly<Record<string, string>>;
}

export async function ask(url: string, { method, body, headers }: Manner = {}): Promise<Answer> {
  const answer = await fetch(url, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    ...(headers !== undefined && { headers }),
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, body: JSON.parse(text === "" ? "{}" : text) as Body, text };
}

/** Submits a job for `model`, and expects 202. */
export async function accepted(url: string, model: string, job: object, headers: Record<string, string> = {}) {
  const { status, body, text } = await submit(url, model, job, headers);
  if (status !== 202) throw new Error(`the job was answered ${status} ${text}`);
  return body;
}

/** Submits a job for `model`. */
export function submit(url: string, model: string, job: object | string, headers: Record<string, string> = {}) {
  return ask(`${url}/v2/models/${model}/jobs`, { body: job, headers });
}

/** One request to `simple`, whose first output is `value` added to itself. */
export function simpleBody(value: number): object {
  const tensor = (name: string) => ({ name, datatype: "INT32", shape: [1, 16], data: Array(16).fill(value) });
  return { inputs: [tensor("INPUT0"), tensor("INPUT1")] };
}

const ENDS = ["completed", "failed", "cancelled", "expired"];

type Tenant = Readonly<Record<string, string>>;

/**
 * Polls until the job has ended. An end does not change, so the polls may be slow: a test waits for
 * hundreds of jobs at a time.
 */
export function ended(url: string, id: string, tenant: Tenant = {}): Promise<Body> {
  return looking(url, id, (view) => ENDS.includes(view.state), tenant, 500);
}

/** Polls until the job is as it should be, which may last only a moment. */
export function standing(url: string, id: string, isSo: (view: Body) => boolean, tenant: Tenant = {}): Promise<Body> {
  return looking(url, id, isSo, tenant, 20);
}

async function looking(
  url: string,
  id: string,
  isSo: (view: Body) => boolean,
  tenant: Tenant,
  mostPauseMs: number,
): Promise<Body> {
  const since = performance.now();
  for (;;) {
    const { status, body, text } = await ask(`${url}/v2/jobs/${id}`, { headers: tenant });
    if (status === 200 && isSo(body)) return body;
    const waitedMs = performance.now() - since;
    if (waitedMs > END_MS) throw new Error(`the job stands as ${status} ${text}`);
    await new Promise((resolve) => setTimeout(resolve, Math.min(mostPauseMs, 20 + waitedMs / 10)));
  }
}
