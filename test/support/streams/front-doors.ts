/**
 * How to put a request to each front door, which is a way into a gateway for clients, and how to
 * read the events of each door.
 */
import type { StreamAsk } from "./ask.js";
import type { Manner, Reading } from "./history.js";
import type { TokenRecord } from "#shared/contract/generation.js";
import { errorKinds, isErrorCode } from "#shared/errors.js";
import type { ServerEvent } from "./event-source.js";
import type { GrpcPart } from "./grpc.js";

export interface Submission {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export function submissionOf({ model, prompt, parameters }: StreamAsk, manner: Manner): Submission {
  const generate = `/v2/models/${model}/generate_stream`;
  switch (manner) {
    case "completions":
      return {
        path: "/v1/completions",
        headers: {},
        body: JSON.stringify({ model, prompt, stream: true, ...parameters }),
      };
    case "generate_stream":
      return { path: generate, headers: {}, body: JSON.stringify({ text_input: prompt, ...parameters }) };
    case "events":
    case "websocket":
    case "grpc":
      return {
        path: typeof prompt === "string" ? generate : "/v1/completions",
        headers: { prefer: "respond-async" },
        body: JSON.stringify(
          typeof prompt === "string" ? { text_input: prompt, ...parameters } : { model, prompt, ...parameters },
        ),
      };
  }
}

/**
 * @param key the Idempotency-Key, if any
 * @returns the public id
 */
export async function submitInBackground(gateway: string, ask: StreamAsk, key?: string): Promise<string> {
  const { path, headers, body } = submissionOf(ask, "events");
  const answer = await fetch(gateway + path, {
    method: "POST",
    headers: {
      ...headers,
      "content-type": "application/json",
      ...(key === undefined ? {} : { "idempotency-key": key }),
    },
    body,
  });
  const { id } = (await answer.json()) as { id?: string };
  if (answer.status !== 202 || id === undefined) throw new Error(`answered with ${answer.status}`);
  return id;
}

/** Takes an event of `/v1/completions`. Like the next two functions, returns whether to read on. */
export function takeChunk(reading: Reading, { id, data }: ServerEvent, at: number): boolean {
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

/** Takes an event of `generate_stream`. */
export function takeText(reading: Reading, { data }: ServerEvent, at: number): boolean {
  const answer = JSON.parse(data) as { text_output?: string; error?: string; code?: string };
  if (answer.error !== undefined) return fail(reading, answer.code, answer.error);
  take(reading, { index: undefined, text: answer.text_output ?? "", record: undefined, at });
  return true;
}

/** Takes a message of ModelStreamInfer. */
export function takePart(reading: Reading, { index, text, isFinal, error }: GrpcPart, at: number): boolean {
  if (error !== undefined) return fail(reading, ...error);
  if (text !== undefined) take(reading, { index, text, record: undefined, at });
  if (isFinal) reading.outcome = { kind: "finished" };
  return !isFinal;
}

/** Takes an event of the records' own path. */
export function takeRecord(reading: Reading, event: ServerEvent, at: number): boolean {
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

export function recordIn({ data }: ServerEvent) {
  const record = JSON.parse(data) as TokenRecord;
  return { record, text: record.choices.find(({ index }) => index === 0)?.text ?? "" };
}

function take(reading: Reading, piece: Omit<Reading["pieces"][number], "connection">): void {
  reading.pieces.push({ ...piece, connection: reading.connections.length - 1 });
}

/**
 * An error that the client may ask again after is no failure of the stream: another gateway may
 * still serve the stream.
 * @returns false, because nothing more comes from this gateway
 */
function fail(reading: Reading, code: string | undefined, what: string): false {
  if (code === undefined || !isErrorCode(code) || !errorKinds[code].retry) {
    reading.outcome = { kind: "failed", code: code ?? "none", what };
  }
  return false;
}
