/** Jobs with labels, and their subjects as a client computes them from the AsyncAPI document. */
import { createHash } from "node:crypto";

/** @param label as `team:blue` */
export function subjectOfLabel(tenant: string, label: string, model = "*", request = "*"): string {
  const token = createHash("sha256").update(label).digest("base64url").slice(0, 22);
  return `baton.v1.${tenant}.label.${token}.${model}.${request}`;
}

export interface LabelledJob {
  /** Id of the job. */
  readonly id: string;
  /** The public id of the job's request. */
  readonly request: string;
}

/**
 * Submits a job that generates.
 * @param options of the job, beside its body
 * @throws Error if the gateway refuses the job
 */
export async function submitLabelled(
  gateway: string,
  model: string,
  generate: object,
  options: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<LabelledJob> {
  const answer = await fetch(`${gateway}/v2/models/${model}/jobs`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ generate, ...options }),
  });
  const told = (await answer.json()) as { id: string; request_id: string };
  if (answer.status !== 202) throw new Error(`answered with ${answer.status}: ${JSON.stringify(told)}`);
  return { id: told.id, request: told.request_id };
}

/** The token that names a request in subjects. */
export const tokenOf = (id: string) => id.split(".")[0] ?? "";
