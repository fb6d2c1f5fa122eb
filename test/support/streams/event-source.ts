/**
 * A single connection to an event stream, and how it ended: in order, cut, left by the client, or
 * refused before it began. The connection never reconnects by itself.
 */
import { request, type IncomingMessage } from "node:http";
import { StringDecoder } from "node:string_decoder";
import { tokenRecord, type TokenRecord } from "#shared/contract/generation.js";

export interface EventSourceCall {
  readonly url: string;
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Called with every answer's status and headers, of refusals, too. */
  readonly onHead?: (answer: IncomingMessage) => void;
  /** Returns false to leave. Then the connection is cut, and no further event arrives. */
  readonly onEvent: (event: ServerEvent, at: number) => boolean;
  readonly signal?: AbortSignal;
}

export type SourceEnd =
  | { readonly kind: "ended" }
  | { readonly kind: "left" }
  | { readonly kind: "cut"; readonly why: string }
  | { readonly kind: "answered"; readonly status: number; readonly body: string };

/**
 * Longer than the pauses between the gateway's comments: a connection that is silent for this long
 * is dead.
 */
const SILENCE_MS = 40_000;

export function readEventSource(call: EventSourceCall): Promise<SourceEnd> {
  const { url, method = "GET", headers = {}, body, onHead, onEvent, signal } = call;
  return new Promise((resolve) => {
    const asked = request(url, {
      method,
      agent: false,
      headers: body === undefined ? headers : { "content-type": "application/json", ...headers },
    });
    let over = false;
    const end = (how: SourceEnd) => {
      over = true;
      signal?.removeEventListener("abort", leave);
      asked.destroy();
      resolve(how);
    };
    const leave = () => end({ kind: "left" });
    const cut = (error: NodeJS.ErrnoException) => end({ kind: "cut", why: error.code ?? error.message });
    if (signal?.aborted === true) return leave();
    signal?.addEventListener("abort", leave, { once: true });
    asked.setTimeout(SILENCE_MS, () => asked.destroy(new Error("silent")));
    asked.on("error", cut);
    asked.on("response", (answer) => {
      onHead?.(answer);
      answer.on("error", cut);
      answer.on("close", () => end({ kind: "cut", why: "closed" }));
      if (answer.statusCode === 200 && answer.headers["content-type"]?.startsWith("text/event-stream") === true) {
        const parser = new EventParser();
        const decoder = new StringDecoder("utf8");
        answer.on("data", (chunk: Buffer) => {
          const at = performance.now();
          for (const event of over ? [] : parser.push(decoder.write(chunk))) if (!onEvent(event, at)) return leave();
        });
        answer.on("end", () => end({ kind: "ended" }));
      } else {
        const parts: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => parts.push(chunk));
        answer.on("end", () => {
          end({ kind: "answered", status: answer.statusCode ?? 0, body: Buffer.concat(parts).toString("utf8") });
        });
      }
    });
    asked.end(body);
  });
}

export interface ServerEvent {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: string;
}

/**
 * Puts server-sent events together from a connection's pieces. An event counts after its empty
 * line, so a client never sees an event that a cut divides.
 */
export class EventParser {
  #rest = "";

  push(text: string): ServerEvent[] {
    const blocks = (this.#rest + text).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.flatMap(eventOf);
  }
}

/** Comments and `retry:` are no events. */
function eventOf(block: string): ServerEvent[] {
  const lines = block.split("\n");
  const field = (name: string) =>
    lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2));
  const data = field("data");
  if (data.length === 0) return [];
  return [{ id: field("id").at(-1), event: field("event").at(-1), data: data.join("\n") }];
}

/** All events of a complete body. */
export function eventsIn(body: string): ServerEvent[] {
  return new EventParser().push(body);
}

/** The JSON of an OpenAI stream's events, without the `[DONE]` at the end. */
export const jsonIn = <T = Record<string, unknown>>(events: readonly ServerEvent[]): T[] =>
  events.filter(({ data }) => data !== "[DONE]").map(({ data }) => JSON.parse(data) as T);

/** The records among the events in this text. */
export function recordsIn(text: string): TokenRecord[] {
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => tokenRecord.parse(JSON.parse(data)));
}
