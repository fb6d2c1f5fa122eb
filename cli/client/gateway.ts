/** Sends HTTP requests to a gateway. */
import { randomUUID } from "node:crypto";
import type { Address } from "./address.js";
import { refusal, Unreached, unreached } from "./errors.js";
import { persistently } from "./persist.js";

export interface Question {
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | FormData;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
}

export interface GatewaySettings extends Address {
  /** Aborts if the command ends early. */
  readonly signal: AbortSignal;
  /** Prints a progress message. */
  readonly note: (text: string) => void;
}

export class Gateway {
  readonly url: string;
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
  readonly #headers: Readonly<Record<string, string>>;

  constructor({ url, headers, signal, note }: GatewaySettings) {
    this.url = url;
    this.#headers = headers;
    this.signal = signal;
    this.note = note;
  }

  /**
   * Sends a GET request, and repeats the request if the connection breaks.
   * @param path from the gateway's root
   * @param known whether an earlier request reached the gateway
   * @throws Failure for an answer that is no success
   */
  async get(path: string, { known = false } = {}): Promise<Answer> {
    return this.#persistently(() => this.ask(path), { known });
  }

  /**
   * Sends a change under a new `Idempotency-Key`. The change happens once, even if the connection
   * breaks and the client sends the request again.
   */
  async change(path: string, question: Question, signal: AbortSignal = this.signal): Promise<Answer> {
    const headers = { "idempotency-key": randomUUID(), ...question.headers };
    return this.#persistently(() => this.ask(path, { ...question, headers }, signal), { signal });
  }

  /** Sends a request once. */
  async ask(path: string, question: Question = {}, signal: AbortSignal = this.signal): Promise<Answer> {
    const response = await this.open(path, question, signal);
    const bytes = await this.#reading(signal, async () => Buffer.from(await response.arrayBuffer()));
    return { status: response.status, headers: response.headers, bytes };
  }

  /**
   * Sends a request once, for an answer that arrives in pieces.
   * @throws Failure for an answer that is no success
   */
  async open(
    path: string,
    { method = "GET", headers = {}, body }: Question = {},
    signal: AbortSignal = this.signal,
  ): Promise<Response> {
    const response = await this.#reading(signal, () =>
      fetch(this.url + path, {
        method,
        headers: { ...this.#headers, ...headers },
        body: body ?? null,
        signal,
        redirect: "manual",
      }),
    );
    if (response.ok) return response;
    const text = await this.#reading(signal, () => response.text());
    const { status } = response;
    const place = response.headers.get("location");
    if (place === null || status < 300 || status > 399) throw refusal(status, text);
    throw new Unreached(`${this.url} redirects to ${place}: set BATON_URL to the gateway itself`, false);
  }

  #persistently<T>(work: () => Promise<T>, { known = false, signal = this.signal } = {}): Promise<T> {
    const onBreak = (error: Error) => this.note(`${error.message}; asking again`);
    return persistently(work, { signal, known, onBreak });
  }

  async #reading<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted) throw error;
      throw unreached(error, this.url);
    }
  }
}

/**
 * The text of a JSON answer.
 * @throws Unreached for another content type, because gateways answer in JSON
 */
export function jsonOf({ headers, bytes }: Answer, { url }: Gateway): string {
  const type = headers.get("content-type") ?? "";
  if (/^application\/json\b/.test(type)) return bytes.toString("utf8");
  throw new Unreached(`${url} answered, but not in JSON: is it a gateway of Baton?`, false);
}
