/** One connection to an event stream, and how it ended: in order, cut, left by us, or refused before it began. It never reconnects by itself. */
import { request, type IncomingMessage } from "node:http";
import { StringDecoder } from "node:string_decoder";
import { EventParser, type ServerEvent } from "./event-parser.js";

export interface EventSourceCall {
  readonly url: string;
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Called with the status and headers, whatever they are. */
  readonly onHead?: (answer: IncomingMessage) => void;
  /** Returns false to leave: nothing more is read, and the connection is cut. */
  readonly onEvent: (event: ServerEvent, at: number) => boolean;
  readonly signal?: AbortSignal;
}

export type SourceEnd =
  | { readonly kind: "ended" }
  | { readonly kind: "left" }
  | { readonly kind: "cut"; readonly why: string }
  | { readonly kind: "answered"; readonly status: number; readonly body: string };

/** Longer than the gateway's comments are apart: a connection that is silent for this long is dead. */
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
