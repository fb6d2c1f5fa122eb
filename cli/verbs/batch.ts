/**
 * `batch run`: has gateways answer all requests of a file. The gateways run the batch without this
 * command. The user may stop the command and start it again: the same arguments find the same
 * batch.
 */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream, createWriteStream, openAsBlob } from "node:fs";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as pause } from "node:timers/promises";
import type { Command } from "commander";
import { isObject } from "#shared/json/members.js";
import { parseJson, type JsonObject } from "#shared/json/parse.js";
import { printJson } from "#shared/json/print.js";
import type { Batch } from "../../gateway/answers.js";
import { segment } from "../client/address.js";
import { readAnswer } from "../client/answers.js";
import { Refused } from "../client/errors.js";
import { jsonOf } from "../client/gateway.js";
import { exitCodes, Failure } from "../terminal/exit.js";
import {
  countsOf,
  faultLines,
  hasBatchEnded,
  progressBar,
  readNote,
  type BatchNote,
  type BatchView,
} from "./batch-lines.js";
import type { OpenSession, Session } from "./session.js";

interface RunOptions {
  readonly endpoint?: string;
  readonly output?: string;
  readonly errors?: string;
}

const SHORTEST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 1_000;
/** How often to print progress if standard error is no screen, in ms. */
const TELL_EVERY_MS = 2_000;
const WINDOW = "24h";

export function addBatch(program: Command, open: OpenSession): void {
  const batch = program.command("batch").description("have a file of requests answered");
  batch
    .command("run")
    .description("send a file of requests, one on each line, and fetch the answers; again, goes on with it")
    .argument("<file>", "JSON lines, as OpenAI's batches take them")
    .option("--endpoint <path>", "what the requests are for; else the url of the first line")
    .option("--output <file>", "where the answers go; else <file>.output.jsonl")
    .option("--errors <file>", "where the lines go that failed; else <file>.errors.jsonl")
    .action((file: string, options: RunOptions, command: Command) => run(open(command), file, options));
}

async function run(session: Session, file: string, options: RunOptions): Promise<void> {
  const { terminal, signal } = session;
  const started = await begin(session, file, options);
  const goOn = () => terminal.note(`the batch goes on without this; to go on watching: npx baton batch run ${file}`);
  let view: BatchView;
  let text: string;
  try {
    text = await watch(session, started);
    view = readAnswer<Batch>(text);
    await fetchFile(session, view.output_file_id, options.output ?? `${file}.output.jsonl`);
    await fetchFile(session, view.error_file_id, options.errors ?? `${file}.errors.jsonl`);
  } catch (error) {
    if (signal.aborted) goOn();
    throw error;
  }
  const { status = "" } = view;
  const { total, completed, failed } = countsOf(view);
  if (terminal.json) terminal.document(text);
  else terminal.print([`batch ${started}: ${status}, ${completed} answered, ${failed} failed`]);
  for (const fault of faultLines(view)) terminal.note(fault);
  if (status !== "completed") throw new Failure(exitCodes.failed, `the batch is ${status}`);
  if (failed > 0) throw new Failure(exitCodes.failed, `${failed} of ${total} lines failed`);
}

/**
 * Finds the batch that an earlier command began for the file, or begins a batch. Writes each
 * finished step into the note before the next step, so that a later command can continue.
 * @returns the batch's id
 */
async function begin(session: Session, file: string, { endpoint: asked }: RunOptions): Promise<string> {
  const { terminal } = session;
  const noteFile = `${file}.baton.json`;
  const digest = await digestOf(file);
  const before = await noteOf(noteFile);
  if (before !== undefined && before.digest !== digest) {
    const why = `${file} has changed since its batch was begun: remove ${noteFile} to begin another one`;
    throw new Failure(exitCodes.usage, why);
  }
  const endpoint = asked ?? before?.endpoint ?? (await endpointOf(file));
  if (before !== undefined && before.endpoint !== endpoint) {
    const why = `the batch of ${file} is for ${before.endpoint}: remove ${noteFile} to begin another one`;
    throw new Failure(exitCodes.usage, why);
  }
  if (before?.batch !== undefined && (await exists(session, before.batch))) {
    terminal.note(`going on with batch ${before.batch}`);
    return before.batch;
  }
  // If the gateway no longer has the batch, a new batch begins under another key.
  const isGone = before?.batch !== undefined;
  const key = before === undefined || isGone ? randomUUID() : before.key;
  let note: BatchNote = { digest, endpoint, key, ...(!isGone && before?.file !== undefined && { file: before.file }) };
  await writeNote(noteFile, note);
  if (note.file === undefined) {
    terminal.note(`sending ${file}`);
    note = { ...note, file: await upload(session, file, key) };
    await writeNote(noteFile, note);
  }
  const batch = await create(session, note);
  await writeNote(noteFile, { ...note, batch });
  terminal.note(`batch ${batch}`);
  return batch;
}

async function exists({ gateway }: Session, id: string): Promise<boolean> {
  try {
    await gateway.get(pathOf(id));
    return true;
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return false;
    throw error;
  }
}

async function upload({ gateway }: Session, file: string, key: string): Promise<string> {
  const body = new FormData();
  body.set("purpose", "batch");
  body.set("file", await openAsBlob(file), basename(file));
  const answer = await gateway.change("/v1/files", { method: "POST", headers: { "idempotency-key": key }, body });
  return idOf(jsonOf(answer, gateway));
}

async function create({ gateway }: Session, { endpoint, key, file }: BatchNote): Promise<string> {
  const body = printJson({ input_file_id: file, endpoint, completion_window: WINDOW });
  const headers = { "content-type": "application/json", "idempotency-key": key };
  return idOf(jsonOf(await gateway.change("/v1/batches", { method: "POST", headers, body }), gateway));
}

/** @returns the gateway's answer about the ended batch */
async function watch({ gateway, terminal, signal }: Session, id: string): Promise<string> {
  let shown = "";
  let toldAt = -Infinity;
  const startedAt = performance.now();
  let first: number | undefined;
  for (let pauseMs = SHORTEST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    const text = jsonOf(await gateway.get(pathOf(id), { known: true }), gateway);
    const view = readAnswer<Batch>(text);
    const { completed, failed } = countsOf(view);
    const done = completed + failed;
    first ??= done;
    const now = performance.now();
    const bar = progressBar(view, (1_000 * (done - first)) / Math.max(1, now - startedAt));
    const isOver = hasBatchEnded(view);
    if (bar !== shown && (terminal.isWatched || isOver || now - toldAt >= TELL_EVERY_MS)) {
      terminal.progress(bar);
      shown = bar;
      toldAt = now;
    }
    if (isOver) return text;
    await pause(pauseMs, undefined, { signal });
  }
}

/** Downloads a file under a temporary name, so that `to` is complete or absent. */
async function fetchFile(
  { gateway, terminal, signal }: Session,
  id: string | null | undefined,
  to: string,
): Promise<void> {
  if (typeof id !== "string") return;
  const partial = `${to}.part`;
  const { body } = await gateway.open(`/v1/files/${segment(id)}/content`);
  try {
    await pipeline(Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]), createWriteStream(partial), {
      signal,
    });
    await rename(partial, to);
  } catch (cause) {
    await rm(partial, { force: true });
    if (signal.aborted) throw cause;
    throw new Failure(exitCodes.unreachable, `${to} cannot be written: ${String(cause)}`, { cause });
  }
  terminal.note(`wrote ${to}`);
}

async function digestOf(file: string): Promise<string> {
  try {
    const hash = createHash("sha256");
    await pipeline(createReadStream(file), hash);
    return `sha256:${hash.digest("hex")}`;
  } catch (cause) {
    const why = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    throw new Failure(exitCodes.usage, `cannot read ${file} (${why})`, { cause });
  }
}

/** The url of the first line that has text. */
async function endpointOf(file: string): Promise<string> {
  const input = createReadStream(file);
  try {
    for await (const line of createInterface({ input })) {
      const { url } = objectOf(line);
      if (typeof url === "string") return url;
      if (line.trim() !== "") break;
    }
  } finally {
    input.destroy();
  }
  throw new Failure(exitCodes.usage, `the first line of ${file} has no url: give the --endpoint`);
}

function objectOf(text: string): JsonObject {
  try {
    const value = parseJson(Buffer.from(text.replace(/^\ufeff/, "")), (name) => name === "data");
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

async function noteOf(path: string): Promise<BatchNote | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch {
    return undefined;
  }
  const note = readNote(text);
  if (note === undefined) throw new Failure(exitCodes.usage, `${path} is no note of a batch: remove it to begin one`);
  return note;
}

/** Writes another file and renames it, so that no reader finds half a note. */
async function writeNote(path: string, note: BatchNote): Promise<void> {
  try {
    await writeFile(`${path}.part`, `${JSON.stringify(note, null, 2)}\n`);
    await rename(`${path}.part`, path);
  } catch (cause) {
    throw new Failure(exitCodes.usage, `cannot write ${path}: the batch could not be found again`, { cause });
  }
}

function idOf(text: string): string {
  return readAnswer<Pick<Batch, "id">>(text).id ?? "";
}

function pathOf(id: string): string {
  return `/v1/batches/${segment(id)}`;
}
