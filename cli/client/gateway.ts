/** Asks a gateway over HTTP, as any other client does. */
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
  /** Aborted when the command is to end. */
  readonly signal: AbortSignal;
  /** Tells the person at the terminal what is going on. */
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
   * Asks until there is an answer: where the connection breaks, again.
   * @param path from the gateway's root
   * @param known whether the gateway was reached before
   * @throws Failure for an answer that is no success
   */
  async get(path: string, { known = false } = {}): Promise<Answer> {
    return this.#persistently(() => this.ask(path), { known });
  }

  /**
   * Asks for a change under a new `Idempotency-Key`, so that it takes effect once, however often
   * the connection breaks.
   */
  async change(path: string, question: Question, signal: AbortSignal = this.signal): Promise<Answer> {
    const headers = { "idempotency-key": randomUUID(), ...question.headers };
    return this.#persistently(() => this.ask(path, { ...question, headers }, signal), { signal });
  }

  /** Asks once. */
  async ask(path: string, question: Question = {}, signal: AbortSignal = this.signal): Promise<Answer> {
    const response = await this.open(path, question, signal);
    const bytes = await this.#reading(signal, async () => Buffer.from(await response.arrayBuffer()));
    return { status: response.status, headers: response.headers, bytes };
  }

  /**
   * Asks once, for an answer that comes bit by bit.
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
 * The text of an answer in JSON.
 * @throws Unreached for another one, which no gateway has sent
 */
export function jsonOf({ headers, bytes }: Answer, { url }: Gateway): string {
  const type = headers.get("content-type") ?? "";
  if (/^application\/json\b/.test(type)) return bytes.toString("utf8");
  throw new Unreached(`${url} answered, but not in JSON: is it a gateway of Baton?`, false);
}
