/** `jobs …`: submit jobs, and read their results later. */
import { setTimeout as pause } from "node:timers/promises";
import { InvalidArgumentError, Option, type Command } from "commander";
import { JsonError } from "#shared/json/error.js";
import { isObject } from "#shared/json/members.js";
import { parseJson, type IsTensorData } from "#shared/json/parse.js";
import { printJson } from "#shared/json/print.js";
import type { Job } from "../../gateway/answers.js";
import { segment } from "../client/address.js";
import { readPages, without } from "../client/answers.js";
import { Refused } from "../client/errors.js";
import { jsonOf } from "../client/gateway.js";
import { exitCodes, Failure } from "../terminal/exit.js";
import { duration, durationOrTime } from "./duration.js";
import { failureOf, hasEnded, jobLines, jobListLines, progressLine, readJob, resultTables } from "./job-lines.js";
import { integer, readInput } from "./options.js";
import type { OpenSession, Session } from "./session.js";

type Labels = Readonly<Record<string, string>>;

export interface JobBodyOptions {
  readonly delay?: number;
  readonly runAt?: string;
  readonly priority?: number;
  readonly deadline?: number | string;
  readonly attempts?: number;
  readonly label?: Labels;
}

interface SubmitOptions extends JobBodyOptions {
  readonly infer?: string;
  readonly generate?: string;
  readonly chat?: string;
  readonly idempotencyKey?: string;
  readonly wait?: true;
}

interface ListOptions {
  readonly state?: string;
  readonly model?: string;
  readonly label?: Labels;
}

/** The kinds of request that a job can run. */
export const kinds = ["infer", "generate", "chat"] as const;
const PAGE = 100;
const SHORTEST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;

export function addJobs(program: Command, open: OpenSession): void {
  const jobs = program.command("jobs").description("submit work to be done later, and look after it");

  const submit = jobs
    .command("submit")
    .description("submit a job, and print its id; the body is the JSON of a file, - reads standard input")
    .argument("<model>");
  for (const kind of kinds) {
    const others = kinds.filter((other) => other !== kind);
    submit.addOption(new Option(`--${kind} <file>`, `the body of a request to ${kind}`).conflicts([...others]));
  }
  submit
    .addOption(new Option("--delay <duration>", "run it after this time").argParser(duration).conflicts("runAt"))
    .option("--run-at <time>", "run it at this time, such as 2026-12-01T09:00:00Z")
    .option("--priority <n>", "from 1, which goes first, to 9", integer)
    .option("--deadline <duration or time>", "do not run it after this", durationOrTime)
    .option("--attempts <n>", "how often it may fail for the fleet's fault", integer)
    .option("--label <name=value>", "a label; may be given again", label)
    .option("--idempotency-key <key>", "the same key submits the job once", idempotencyKey)
    .option("--wait", "wait for its end, and show its result")
    .action(async (model: string, options: SubmitOptions, command: Command) => {
      await submitJob(open(command), model, options);
    });

  jobs
    .command("list")
    .description("list jobs, the newest first")
    .option("--state <states>", "only those in these states, such as queued,running")
    .option("--model <model>", "only those of this model")
    .option("--label <name=value>", "only those with this label; may be given again", label)
    .action(async (options: ListOptions, command: Command) => {
      const { gateway, terminal } = open(command);
      const found = (await readPages<Job>(gateway, "/v2/jobs", listQuery(options), isTensorData)).map((one) =>
        without(one, "result"),
      );
      if (terminal.json) terminal.document(printJson({ object: "list", data: found }));
      else terminal.print(jobListLines(found), { heading: true });
    });

  const onJob = (name: string, description: string, work: (session: Session, id: string) => Promise<void>) =>
    jobs
      .command(name)
      .description(description)
      .argument("<id>")
      .action((id: string, _: object, command: Command) => work(open(command), id));

  onJob("show", "show one job, and its result", async (session, id) => {
    await showJob(session, jsonOf(await session.gateway.get(pathOf(id)), session.gateway));
  });
  onJob("watch", "show each change of a job until its end; with --json, each on a line", async (session, id) => {
    const { terminal } = session;
    const print = (text: string) =>
      terminal.json ? terminal.document(text) : terminal.print([progressLine(readJob(text))]);
    throwIfAny(failureOf(readJob(await watch(session, id, print))));
  });
  onJob("cancel", "cancel a job", async (session, id) => {
    await showJob(session, jsonOf(await session.gateway.change(pathOf(id), { method: "DELETE" }), session.gateway));
  });
  onJob("retry", "run a job again that has failed or expired", async (session, id) => {
    const answer = await session.gateway.change(pathOf(id, "/retry"), { method: "POST" });
    await showJob(session, jsonOf(answer, session.gateway));
  });
}

async function submitJob(session: Session, model: string, options: SubmitOptions): Promise<void> {
  const { gateway, terminal, signal } = session;
  const kind = kinds.find((one) => options[one] !== undefined);
  if (kind === undefined) {
    throw new Failure(exitCodes.usage, "give the job's body: --infer FILE, --generate FILE or --chat FILE");
  }
  const file = options[kind] ?? "";
  const body = jobBody(kind, file, await readInput(file, signal), options);
  const { idempotencyKey: key } = options;
  const headers = { "content-type": "application/json", ...(key !== undefined && { "idempotency-key": key }) };
  const answer = await gateway.change(`/v2/models/${segment(model)}/jobs`, { method: "POST", headers, body });
  const view = jsonOf(answer, gateway);
  const { id = "" } = readJob(view);
  if (options.wait !== true) {
    if (terminal.json) terminal.document(view);
    else terminal.print([id]);
    return;
  }
  terminal.note(`job ${id}`);
  const note = (text: string) => terminal.note(progressLine(readJob(text)));
  const last = await watch(session, id, note).catch((error: unknown) => {
    terminal.note(`the job goes on: npx baton jobs watch ${id}`);
    throw error;
  });
  await showJob(session, last);
  throwIfAny(failureOf(readJob(last)));
}

/**
 * Makes the body of a submission. Copies the file's text unchanged, so that no number loses digits.
 * @throws Failure for a file that is no JSON object
 */
export function jobBody(kind: string, file: string, content: Buffer, options: JobBodyOptions): string {
  checkJson(file, content);
  const { delay, runAt, priority, deadline, attempts, label: labels } = options;
  const terms = printJson({ delay, run_at: runAt, priority, deadline, attempts, labels });
  const rest = terms === "{}" ? "}" : `,${terms.slice(1)}`;
  return `{${JSON.stringify(kind)}:${content.toString("utf8")}${rest}`;
}

function checkJson(file: string, content: Buffer): void {
  const name = file === "-" ? "standard input" : file;
  try {
    if (isObject(parseJson(content, (member) => member === "data"))) return;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new Failure(exitCodes.usage, `${name} is not JSON: ${error.message}`, { cause: error });
  }
  throw new Failure(exitCodes.usage, `${name} is not a JSON object`);
}

/**
 * Reads a job until it ends.
 * @param onChange receives each view that differs from the previous view
 * @returns the last view
 */
async function watch({ gateway, signal }: Session, id: string, onChange: (text: string) => void): Promise<string> {
  let before = "";
  for (let pauseMs = SHORTEST_PAUSE_MS, known = false; ; known = true) {
    const text = jsonOf(await gateway.get(pathOf(id), { known }), gateway);
    pauseMs = text === before ? Math.min(2 * pauseMs, LONGEST_PAUSE_MS) : SHORTEST_PAUSE_MS;
    if (text !== before) onChange(text);
    if (hasEnded(readJob(text))) return text;
    before = text;
    await pause(pauseMs, undefined, { signal });
  }
}

/**
 * Prints a job with its result. Fetches a large result, because the view leaves large results out.
 */
export async function showJob({ gateway, terminal }: Session, text: string): Promise<void> {
  if (terminal.json) return terminal.document(text);
  const job = readJob(text);
  for (const lines of jobLines(job)) terminal.print(lines);
  const { id = "", state, result } = job;
  if (state !== "completed" || result) return;
  try {
    const whole = jsonOf(await gateway.get(pathOf(id, "/result"), { known: true }), gateway);
    const parsed = parseJson(Buffer.from(whole), (name) => name === "data");
    for (const lines of isObject(parsed) ? resultTables(parsed) : []) terminal.print(lines);
  } catch (error) {
    if (!(error instanceof Refused && error.status === 410)) throw error;
    terminal.note(error.message);
  }
}

/** Whether a member of a page belongs to a result, which the parser checks but does not build. */
const isTensorData: IsTensorData = (name, depth) => name === "data" && depth > 4;

export function listQuery({ state, model, label: labels = {} }: ListOptions): URLSearchParams {
  const query = new URLSearchParams({ limit: String(PAGE) });
  if (state !== undefined) query.set("state", state);
  if (model !== undefined) query.set("model", model);
  for (const [name, value] of Object.entries(labels)) query.append("label", `${name}:${value}`);
  return query;
}

/**
 * Reads a key for a header, which cannot hold every text.
 * @throws InvalidArgumentError
 */
function idempotencyKey(text: string): string {
  if (/^[\x20-\x7e]{1,255}$/.test(text)) return text;
  throw new InvalidArgumentError("It must be 1 to 255 printable ASCII characters.");
}

/**
 * Reads a label and adds it to the earlier labels.
 * @throws InvalidArgumentError
 */
export function label(text: string, before: Labels = {}): Labels {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError("It must be name=value.");
  if (Object.hasOwn(before, name)) throw new InvalidArgumentError(`The label ${name} is given twice.`);
  return { ...before, [name]: value };
}

function pathOf(id: string, rest = ""): string {
  return `/v2/jobs/${segment(id)}${rest}`;
}

function throwIfAny(failure: Failure | undefined): void {
  if (failure !== undefined) throw failure;
}
