/** Jobs as the terminal shows them, and how a command ends that waits for a job. */
import { isObject } from "#shared/json/members.js";
import type { JsonObject } from "#shared/json/parse.js";
import { printJson } from "#shared/json/print.js";
import type { Job } from "../../gateway/answers.js";
import { readAnswer } from "../client/answers.js";
import { exitCodes, Failure } from "../terminal/exit.js";
import { cells, memberTexts, onOneLine, pairs, shown, table } from "../terminal/text.js";
import { answerTables } from "./infer.js";

export type JobView = Partial<Job>;

/** Final states. A job leaves a final state only by a retry. */
const ENDS: ReadonlySet<unknown> = new Set<Job["state"]>(["completed", "failed", "cancelled", "expired"]);

/**
 * Parses a job's view. The result contains the tensors' data, which the parser checks but does not
 * build.
 */
export function readJob(text: string): JobView {
  return readAnswer<Job>(text, (name, depth) => name === "data" && depth > 2);
}

export function hasEnded({ state }: JobView): boolean {
  return ENDS.has(state);
}

/** Why a command that waited for the job ends with an error; undefined if the job succeeded. */
export function failureOf({ id, state, error }: JobView): Failure | undefined {
  if (state === "completed") return undefined;
  const why = error ? `: ${errorText(error)}` : "";
  return new Failure(exitCodes.failed, `job ${shown(id)} ${state === "failed" ? "has" : "is"} ${shown(state)}${why}`);
}

/** A line that shows a job's progress. */
export function progressLine({ state, position, progress, error, run_at: runAt }: JobView): string {
  const said = shown(state);
  if (state === "scheduled" && typeof runAt === "string") return `${said} for ${onOneLine(runAt)}`;
  if (state === "queued" && typeof position === "number") return `${said}, ${position} before it`;
  if (state === "running" && progress) return `${said}, ${progressText(progress)}`;
  return error ? `${said}: ${errorText(error)}` : said;
}

function progressText({ tokens, max_tokens: most }: NonNullable<Job["progress"]>): string {
  return most === null ? `${tokens} ${tokens === 1 ? "token" : "tokens"}` : `${tokens} of ${most} tokens`;
}

/** A line for each job. */
export function jobListLines(jobs: readonly JobView[]): string[] {
  const rows = jobs.map((job) => [
    ...cells(job, ["id", "type", "model", "state", "created_at"]),
    labelText(job.labels),
  ]);
  return table(["JOB", "TYPE", "MODEL", "STATE", "CREATED", "LABELS"], rows);
}

/** A line for each member that has a value, and the lines of the result. */
export function jobLines(job: JobView): string[][] {
  const { labels = {}, progress, error, result } = job;
  const lines = pairs({
    ...memberTexts(job, ["object", "result", "error", "progress", "labels"]),
    ...(progress && { progress: progressText(progress) }),
    ...(Object.keys(labels).length > 0 && { labels: labelText(labels) }),
    ...(error && { error: errorText(error) }),
  });
  return [lines, ...(result ? resultTables(result as JsonObject) : [])];
}

/** Tensors as a table, and a text answer as plain text. */
export function resultTables(result: JsonObject): string[][] {
  if (result["outputs"] !== undefined) return answerTables(result);
  const { choices, text_output: text } = result;
  if (typeof text === "string") return [[text]];
  const texts = (Array.isArray(choices) ? choices : []).filter(isObject).map((choice) => {
    const { message } = choice;
    return isObject(message) ? message["content"] : choice["text"];
  });
  const known = texts.filter((one) => typeof one === "string");
  return [known.length > 0 ? known : [printJson(result)]];
}

function errorText({ code, message }: NonNullable<Job["error"]>): string {
  return onOneLine(`${message} (${code})`);
}

function labelText(labels: Job["labels"] = {}): string {
  return Object.entries(labels)
    .map(([name, value]) => onOneLine(`${name}=${value}`))
    .join(" ");
}
