/** Asks a gateway for schedules over HTTP. */
import { ask, type Answer, type Manner } from "../jobs/ask.js";

/** The members that tests read, of a schedule, of a list, and of the jobs of a schedule. */
export interface ScheduleView {
  readonly id: string;
  readonly state: string;
  readonly version: string | null;
  readonly cron: string | null;
  readonly timezone: string | null;
  readonly every: number | null;
  readonly created_at: string;
  readonly next_run_at: string | null;
  readonly next_runs: readonly string[];
  readonly last_run_at: string | null;
  readonly last_job_id: string | null;
  readonly last_error: { readonly at: string; readonly code: string } | null;
  readonly runs: number;
  readonly job: object;
  readonly data: readonly ScheduleView[];
  readonly has_more: boolean;
  readonly last_id: string;
  readonly code: string;
  readonly error: string;
}

export interface TickJob {
  readonly id: string;
  readonly state: string;
  readonly schedule: string;
  readonly scheduled_for: string;
  readonly created_at: string;
}

export interface ScheduleAnswer extends Omit<Answer, "body"> {
  readonly body: ScheduleView;
}

/** @param path behind `/v2` */
export async function askFor(url: string, path: string, manner: Manner = {}): Promise<ScheduleAnswer> {
  const answer = await ask(`${url}/v2${path}`, manner);
  return { ...answer, body: answer.body as unknown as ScheduleView };
}

/** Makes a schedule, and expects 201. */
export async function made(url: string, model: string, schedule: object, manner: Manner = {}): Promise<ScheduleView> {
  const { status, body, text } = await askFor(url, `/models/${model}/schedules`, { body: schedule, ...manner });
  if (status !== 201) throw new Error(`the schedule was answered ${status} ${text}`);
  return body;
}

export async function find(url: string, id: string, manner: Manner = {}): Promise<ScheduleView> {
  const { status, body, text } = await askFor(url, `/schedules/${id}`, manner);
  if (status !== 200) throw new Error(`the schedule was answered ${status} ${text}`);
  return body;
}

/** All jobs of a schedule, the oldest first. */
export async function jobsOf(url: string, id: string, manner: Manner = {}): Promise<readonly TickJob[]> {
  const jobs: TickJob[] = [];
  for (let after = "", more = true; more;) {
    const { status, body, text } = await ask(`${url}/v2/jobs?schedule=${id}&limit=100${after}`, manner);
    if (status !== 200) throw new Error(`the jobs were answered ${status} ${text}`);
    jobs.push(...(body.data as unknown as readonly TickJob[]));
    [after, more] = [`&after=${body.last_id}`, body.has_more];
  }
  return jobs.toSorted((a, b) => Date.parse(a.scheduled_for) - Date.parse(b.scheduled_for));
}
