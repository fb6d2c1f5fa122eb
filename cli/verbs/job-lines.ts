/** Jobs as the terminal shows them, and how a command ends that waits for a job. */
import { isObject } from "#shared/json/members.js";
import { parseJson, type JsonObject, type JsonValue } from "#shared/json/parse.js";
import { printJson } from "#shared/json/print.js";
import { exitCodes, Failure } from "../terminal/exit.js";
import { onOneLine, pairs, table } from "../terminal/text.js";
import { answerTables } from "./infer.js";

/** Final states. A job leaves a final state only by a retry. */
const ENDS: ReadonlySet<string> = new Set(["completed", "failed", "cancelled", "expired"]);
/** The members of a view that have a form of their own, or mean nothing to people. */
const LEFT_OUT: ReadonlySet<string> = new Set(["object", "result", "error", "progress", "labels"]);

/**
 * Parses a job's view. The result contains the tensors' data, which the parser checks but does not
 * build.
 */
export function readJob(text: string): JsonObject {
  const value = parseJson(Buffer.from(text), (name, depth) => name === "data" && depth > 2);
  return isObject(value) ? value : {};
}

export interface JobPage {
  readonly jobs: readonly JsonObject[];
  /** The id after which the next page begins; undefined on the last page. */
  readonly next: string | undefined;
}

/** Parses a page of a list, and removes the jobs' results. */
export function readJobPage(text: string): JobPage {
  const page = parseJson(Buffer.from(text), (name, depth) => name === "data" && depth > 4);
  const { data = [], has_more: more, last_id: last } = isObject(page) ? page : {};
  const jobs = (Array.isArray(data) ? data : []).filter(isObject).map(withoutResult);
  return { jobs, next: more === true && typeof last === "string" ? last : undefined };
}

function withoutResult(job: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(job).filter(([name]) => name !== "result"));
}

export function idOf({ id }: JsonObject): string {
  return typeof id === "string" ? id : "";
}

export function hasEnded({ state }: JsonObject): boolean {
  return typeof state === "string" && ENDS.has(state);
}

/** Why a command that waited for the job ends with an error; undefined if the job succeeded. */
export function failureOf(job: JsonObject): Failure | undefined {
  const { id, state, error } = job;
  if (state === "completed") return undefined;
  const why = error === undefined || error === null ? "" : `: ${errorText(error)}`;
  return new Failure(exitCodes.failed, `job ${shown(id)} ${state === "failed" ? "has" : "is"} ${shown(state)}${why}`);
}

/** A line that shows a job's progress. */
export function progressLine({ state, position, progress, error, run_at: runAt }: JsonObject): string {
  const said = shown(state);
  if (state === "scheduled" && typeof runAt === "string") return `${said} for ${onOneLine(runAt)}`;
  if (state === "queued" && typeof position === "number") return `${said}, ${position} before it`;
  if (state === "running" && isObject(progress)) return `${said}, ${progressText(progress)}`;
  return error === undefined || error === null ? said : `${said}: ${errorText(error)}`;
}

function progressText({ tokens, max_tokens: most }: JsonObject): string {
  if (most !== undefined && most !== null) return `${shown(tokens)} of ${shown(most)} tokens`;
  return `${shown(tokens)} ${tokens === 1 ? "token" : "tokens"}`;
}

/** A line for each job. */
export function jobListLines(jobs: readonly JsonObject[]): string[] {
  const rows = jobs.map((job) => [
    ...["id", "type", "model", "state", "created_at"].map((name) => shown(job[name])),
    labelText(job["labels"]),
  ]);
  return table(["JOB", "TYPE", "MODEL", "STATE", "CREATED", "LABELS"], rows);
}

/** A line for each member that has a value, and the lines of the result. */
export function jobLines(job: JsonObject): string[][] {
  const { labels, progress, error, result } = job;
  const members = Object.entries(job).filter(([name, value]) => !LEFT_OUT.has(name) && value !== null);
  const lines = pairs({
    ...Object.fromEntries(members.map(([name, value]) => [name, shown(value)])),
    ...(isObject(progress) && { progress: progressText(progress) }),
    ...(isObject(labels) && Object.keys(labels).length > 0 && { labels: labelText(labels) }),
    ...(error !== undefined && error !== null && { error: errorText(error) }),
  });
  return [lines, ...(isObject(result) ? resultTables(result) : [])];
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

function errorText(error: JsonValue): string {
  if (!isObject(error)) return shown(error);
  const { code, message } = error;
  return onOneLine(code === undefined ? shown(message) : `${shown(message)} (${shown(code)})`);
}

function labelText(labels: JsonValue | undefined): string {
  if (!isObject(labels)) return "";
  return Object.entries(labels)
    .map(([name, value]) => onOneLine(`${name}=${shown(value)}`))
    .join(" ");
}

function shown(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return "-";
  return onOneLine(typeof value === "string" ? value : printJson(value));
}
