/** What is shown of jobs, and how a command that waits for one ends. */
import { isObject } from "#shared/json/members.js";
import { parseJson, type JsonObject, type JsonValue } from "#shared/json/parse.js";
import { printJson } from "#shared/json/print.js";
import { exitCodes, Failure } from "../terminal/exit.js";
import { onOneLine, pairs, table } from "../terminal/text.js";
import { answerTables } from "./infer.js";

/** States in which a job stays, unless it is retried. */
const ENDS: ReadonlySet<string> = new Set(["completed", "failed", "cancelled", "expired"]);
/** The members of a view that are shown in a way of their own, or mean nothing to people. */
const LEFT_OUT: ReadonlySet<string> = new Set(["object", "result", "error", "progress", "labels"]);

/** Parses a job's view. Tensors' data, which is checked but not built, lies within its result. */
export function readJob(text: string): JsonObject {
  const value = parseJson(Buffer.from(text), (name, depth) => name === "data" && depth > 2);
  return isObject(value) ? value : {};
}

export interface JobPage {
  readonly jobs: readonly JsonObject[];
  /** The id after which the next page begins; undefined where this one is the last. */
  readonly next: string | undefined;
}

/** Parses a page of a list. Its jobs are given without their results. */
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

/** Why a command that has waited for the job ends with an error; undefined where it does not. */
export function failureOf(job: JsonObject): Failure | undefined {
  const { id, state, error } = job;
  if (state === "completed") return undefined;
  const why = error === undefined || error === null ? "" : `: ${errorText(error)}`;
  return new Failure(exitCodes.failed, `job ${shown(id)} ${state === "failed" ? "has" : "is"} ${shown(state)}${why}`);
}

/** One line that says how far a job is. */
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

/** One line for each job. */
export function jobListLines(jobs: readonly JsonObject[]): string[] {
  const rows = jobs.map((job) => [
    ...["id", "type", "model", "state", "created_at"].map((name) => shown(job[name])),
    labelText(job["labels"]),
  ]);
  return table(["JOB", "TYPE", "MODEL", "STATE", "CREATED", "LABELS"], rows);
}

/** A line for each member that says something, and what the job has given. */
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

/** Tensors as a table, and an answer in text as that text. */
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
