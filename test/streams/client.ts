/**
 * A client that reads a stream to its end whatever breaks: it repeats a submit under its `Idempotency-Key` until it knows the stream's id, and from then on goes from
 * gateway to gateway, each time after the last record that it has.
 */
import type { IncomingMessage } from "node:http";
import { tokenRecord } from "#shared/contract/generation.js";
import { errorKinds, isErrorCode } from "#shared/errors.js";
import type { Random } from "../setup/random.js";
import type { StreamAsk } from "./ask.js";
import type { ServerEvent } from "./event-parser.js";
import { readEventSource, type SourceEnd } from "./event-source.js";
import type { Manner, Reading, StreamOutcome } from "./history.js";
import { submissionOf } from "./submission.js";

export interface StreamClientSettings {
  /** Where to ask now. */
  readonly urls: () => readonly string[];
  readonly random: Random;
  /** From the first submit on. */
  readonly patienceMs?: number;
}

const MAX_PAUSE_MS = 250;

export class StreamClient {
  readonly #settings: StreamClientSettings;

  constructor(settings: StreamClientSettings) {
    this.#settings = settings;
  }

  /** @param key two readings under one key are of one stream. */
  async read(ask: StreamAsk, manner: Manner, key: string): Promise<Reading> {
    const { urls, random, patienceMs = 90_000 } = this.#settings;
    const begunAt = performance.now();
    const reading: Reading = { ask, manner, id: undefined, pieces: [], connections: [], begunAt, outcome: undefined };
    let at = random.between(0, urls().length - 1);
    for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      const seen = reading.pieces.length;
      const now = urls();
      const gateway = now[at++ % now.length] ?? "";
      const end = await (reading.id === undefined ? submit(reading, gateway, key) : resume(reading, gateway));
      const submitted = reading.id !== undefined && end.kind === "answered" && end.status === 202;
      if (reading.outcome === undefined && !submitted) reading.outcome = verdictOf(reading, end);
      if (reading.outcome !== undefined) return reading;
      if (performance.now() - begunAt > patienceMs) {
        reading.outcome = { kind: "unresolved", what: reading.connections.at(-1)?.end ?? "never connected" };
        return reading;
      }
      if (reading.pieces.length > seen || submitted) pauseMs = 5;
      await new Promise((resolve) => setTimeout(resolve, pauseMs * (0.5 + Math.random() / 2)));
    }
  }
}

async function submit(reading: Reading, gateway: string, key: string): Promise<SourceEnd> {
  const { path, headers, body } = submissionOf(reading.ask, reading.manner);
  const onHead = ({ headers: answered, statusCode = 0 }: IncomingMessage) => {
    const id = answered["baton-request-id"];
    if (statusCode < 300 && typeof id === "string") reading.id = id;
  };
  const onEvent = reading.manner === "completions" ? takeChunk : takeText;
  return connect(reading, gateway, path, {
    method: "POST",
    headers: { ...headers, "idempotency-key": key },
    body,
    onHead,
    onEvent: (event, at) => onEvent(reading, event, at),
  });
}

/** Says what it has in one of the two ways in turn; a client of `generate_stream` has no index, so it reads all again and skips as many texts as it has. */
async function resume(reading: Reading, gateway: string): Promise<SourceEnd> {
  const after = reading.pieces.findLast(({ index }) => index !== undefined)?.index;
  let skip = after === undefined ? reading.pieces.length : 0;
  const asHeader = reading.connections.length % 2 === 0 && after !== undefined;
  const query = after === undefined || asHeader ? "" : `?after=${after}`;
  return connect(reading, gateway, `/v2/requests/${reading.id}/events${query}`, {
    headers: asHeader ? { "last-event-id": String(after) } : {},
    onEvent: (event, at) => {
      if (skip > 0 && event.event !== "error") {
        const { text } = recordIn(event);
        if (text !== "") skip--;
        return true;
      }
      return takeRecord(reading, event, at);
    },
  });
}

type Call = Omit<Parameters<typeof readEventSource>[0], "url">;

async function connect(reading: Reading, gateway: string, path: string, call: Call): Promise<SourceEnd> {
  const connection = { gateway, path, begunAt: performance.now(), end: "open" };
  reading.connections.push(connection);
  const end = await readEventSource({ ...call, url: gateway + path });
  connection.end = inWords(end);
  return end;
}

/** An orderly end is the stream's end only at the one front door that has no other; at the others more must come. */
function verdictOf(reading: Reading, end: SourceEnd): StreamOutcome | undefined {
  if (end.kind === "ended" && reading.manner === "generate_stream" && reading.connections.length === submits(reading)) {
    return { kind: "finished" };
  }
  if (end.kind !== "answered") return undefined;
  const code = /"code"\s*:\s*"([^"]*)"/.exec(end.body)?.[1] ?? "none";
  return mayBeAskedAgain(code, end.status) ? undefined : { kind: "failed", code, what: inWords(end) };
}

function submits({ connections }: Reading): number {
  return connections.filter(({ path }) => !path.startsWith("/v2/requests/")).length;
}

function mayBeAskedAgain(code: string, status: number): boolean {
  if (status === 503 || status === 429) return !isErrorCode(code) || errorKinds[code].retry;
  return false;
}

/** An event of `/v1/completions`. @returns whether to read on */
function takeChunk(reading: Reading, { id, data }: ServerEvent, at: number): boolean {
  if (data === "[DONE]") {
    reading.outcome ??= { kind: "failed", code: "none", what: "[DONE] without a finish reason" };
    return false;
  }
  const chunk = JSON.parse(data) as {
    error?: { code?: string; message: string };
    choices: { text: string; finish_reason: string | null }[];
  };
  if (chunk.error !== undefined) return fail(reading, chunk.error.code, chunk.error.message);
  const [choice] = chunk.choices;
  const index = id === undefined ? undefined : Number(id);
  take(reading, { index, text: choice?.text ?? "", record: undefined, at });
  if (choice?.finish_reason !== null && choice !== undefined) reading.outcome = { kind: "finished" };
  return true;
}

/** An event of `generate_stream`. */
function takeText(reading: Reading, { data }: ServerEvent, at: number): boolean {
  const answer = JSON.parse(data) as { text_output?: string; error?: string; code?: string };
  if (answer.error !== undefined) return fail(reading, answer.code, answer.error);
  take(reading, { index: undefined, text: answer.text_output ?? "", record: undefined, at });
  return true;
}

/** An event of the records' own path. */
function takeRecord(reading: Reading, event: ServerEvent, at: number): boolean {
  if (event.event === "error") {
    const { code, error } = JSON.parse(event.data) as { code?: string; error: string };
    return fail(reading, code, error);
  }
  const { record, text } = recordIn(event);
  take(reading, { index: Number(event.id), text, record: event.data, at });
  if (record.final !== true) return true;
  const { reason, error } = record;
  reading.outcome =
    reason === "finished"
      ? { kind: "finished" }
      : { kind: "failed", code: error?.code ?? "none", what: error?.message ?? String(reason) };
  return false;
}

function recordIn({ data }: ServerEvent) {
  const record = tokenRecord.parse(JSON.parse(data));
  return { record, text: record.choices.find(({ index }) => index === 0)?.text ?? "" };
}

function take(reading: Reading, piece: Omit<Reading["pieces"][number], "connection">): void {
  reading.pieces.push({ ...piece, connection: reading.connections.length - 1 });
}

/** What may be asked again is no failure of the stream: this gateway cannot go on, another may. @returns false: nothing more comes from this one */
function fail(reading: Reading, code: string | undefined, what: string): false {
  if (code === undefined || !isErrorCode(code) || !errorKinds[code].retry) {
    reading.outcome = { kind: "failed", code: code ?? "none", what };
  }
  return false;
}

function inWords(end: SourceEnd): string {
  switch (end.kind) {
    case "answered":
      return `${end.status} ${end.body.slice(0, 200)}`;
    case "cut":
      return `cut: ${end.why}`;
    case "ended":
    case "left":
      return end.kind;
  }
}
