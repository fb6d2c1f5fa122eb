/** Loads and unloads models over HTTP, and reads which models a gateway knows. */

export interface Answered {
  readonly status: number;
  /** Empty if the answer has no body. */
  readonly error: string;
}

/** @param parameters of the request; absent: the request has no body */
export async function control(
  url: string,
  action: "load" | "unload",
  model: string,
  parameters?: Readonly<Record<string, unknown>>,
): Promise<Answered> {
  const body = parameters === undefined ? null : JSON.stringify({ parameters });
  const answer = await fetch(`${url}/v2/repository/models/${model}/${action}`, { method: "POST", body });
  const text = await answer.text();
  return { status: answer.status, error: text === "" ? "" : (JSON.parse(text) as { error: string }).error };
}

export interface Listed {
  readonly name: string;
  readonly version?: string;
  readonly state?: string;
  readonly reason?: string;
}

export async function index(url: string): Promise<readonly Listed[]> {
  const answer = await fetch(`${url}/v2/repository/index`, { method: "POST" });
  return (await answer.json()) as readonly Listed[];
}

/** The versions of a model that the gateway knows; empty if it knows none. */
export async function versions(url: string, model: string): Promise<readonly string[]> {
  const answer = await fetch(`${url}/v2/models/${model}`);
  return ((await answer.json()) as { readonly versions?: readonly string[] }).versions ?? [];
}

export async function maxBatchSize(url: string, model: string): Promise<number | undefined> {
  const answer = await fetch(`${url}/v2/models/${model}/config`);
  return ((await answer.json()) as { readonly max_batch_size?: number }).max_batch_size;
}
