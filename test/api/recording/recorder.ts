/** The exchanges of a run in their order, with labels in the place of ids and times. */
import { isUtf8 } from "node:buffer";
import { setTimeout as delay } from "node:timers/promises";
import { exchange, type Answer, type Question } from "./exchange.js";
import { Labels } from "./labels.js";

/** One exchange as it is kept: a line of the recording. */
export interface Recorded {
  /** Method and path, and for the same ones in other words a note. */
  readonly name: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The text as it was sent; base64 of bytes that are no text. */
  readonly body: string;
}

export type { Answer } from "./exchange.js";
export type Headers = Readonly<Record<string, string>>;

const EVERY_MS = 50;
const PATIENCE_MS = 60_000;

/** Sends requests of one tenant, so that each case has lists of its own. */
export class Recorder {
  readonly url: string;
  readonly recorded: Recorded[];
  readonly #labels: Labels;
  readonly #tenant: Headers;

  private constructor(url: string, recorded: Recorded[], labels: Labels, tenant: Headers) {
    this.url = url;
    this.recorded = recorded;
    this.#labels = labels;
    this.#tenant = tenant;
  }

  /** @param url of a gateway that takes the tenant from `x-tenant` */
  static at(url: string): Recorder {
    return new Recorder(url, [], new Labels(), {});
  }

  /** Begins a case: the next exchanges are of this tenant, and ids are numbered anew. */
  begin(tenant: string): Recorder {
    return new Recorder(this.url, this.recorded, new Labels(), { "x-tenant": tenant });
  }

  as(tenant: string): Recorder {
    return new Recorder(this.url, this.recorded, this.#labels, { "x-tenant": tenant });
  }

  /** Requests that do not say whose they are. */
  withoutTenant(): Recorder {
    return new Recorder(this.url, this.recorded, this.#labels, {});
  }

  get(path: string, headers: Headers = {}): Promise<Answer> {
    return this.send({ method: "GET", path, headers });
  }

  post(path: string, body: Question["body"] = "", headers: Headers = {}): Promise<Answer> {
    return this.send({ method: "POST", path, headers, body });
  }

  delete(path: string, headers: Headers = {}): Promise<Answer> {
    return this.send({ method: "DELETE", path, headers });
  }

  /** Sends a request, and keeps the exchange. */
  async send(question: Question): Promise<Answer> {
    const answer = await this.ask(question);
    this.keep(nameOf(question), answer);
    return answer;
  }

  /** Sends a request without keeping the exchange. */
  ask(question: Question): Promise<Answer> {
    return exchange(this.url, { ...question, headers: { ...this.#tenant, ...question.headers } });
  }

  keep(name: string, { status, headers, body }: Answer): void {
    const sent = isUtf8(body) ? body.toString() : body.toString("base64");
    const text = this.#labels.of(withoutPulse(sent));
    // The length of an answer with ids varies with them.
    const lengths = text === sent ? {} : { "content-length": "<length>" };
    const shown = headers["content-length"] === undefined ? headers : { ...headers, ...lengths };
    this.recorded.push({
      name: this.#labels.of(name),
      status,
      headers: Object.fromEntries(Object.entries(shown).map(([key, value]) => [key, this.#headerOf(key, value)])),
      body: text,
    });
  }

  /** A gateway draws the id of a request whose client has chosen none: it names nothing else. */
  #headerOf(name: string, value: string): string {
    if (name === "stream-cursor") return "<clock>";
    return name === "x-request-id" && /^[\da-f-]{36}$/.test(value) ? "<drawn>" : this.#labels.of(value);
  }

  /**
   * Asks until the answer's JSON is as wanted, and keeps the last exchange alone.
   *
   * @throws Error if that takes longer than a minute
   */
  async until(path: string, isWanted: (json: Json, answer: Answer) => boolean): Promise<Answer> {
    const giveUpAt = Date.now() + PATIENCE_MS;
    for (;;) {
      const answer = await this.ask({ method: "GET", path });
      if (isWanted(jsonOf(answer), answer)) {
        this.keep(`GET ${path}`, answer);
        return answer;
      }
      if (Date.now() > giveUpAt) throw new Error(`GET ${path} still gives ${answer.status} ${answer.body.toString()}`);
      await delay(EVERY_MS);
    }
  }
}

/** The members that the cases read of an answer. */
export interface Json {
  readonly id: string;
  readonly state: string;
  readonly status: string;
  readonly output_file_id: string | null;
  readonly error_file_id: string | null;
  readonly data: readonly { readonly id: string; readonly state: string; readonly attempts: readonly unknown[] }[];
}

/** @returns the body as JSON; an empty object if it is none */
export function jsonOf({ body }: Answer): Json {
  try {
    return JSON.parse(body.toString()) as Json;
  } catch {
    return {} as Json;
  }
}

/** Keep-alive comments of event streams come by the clock. */
function withoutPulse(text: string): string {
  return text.replace(/^:[^\n]*\n\n/gm, "");
}

function nameOf({ method, path, headers = {}, body }: Question): string {
  const head = Object.entries(headers).map(([name, value]) => ` ${name}: ${value}`);
  const sent = Buffer.isBuffer(body) ? `${body.length} bytes` : typeof body === "object" ? JSON.stringify(body) : body;
  const shown = sent === undefined || sent === "" ? "" : ` ${sent.length > 400 ? `${sent.slice(0, 400)}…` : sent}`;
  return `${method} ${path}${head.join("")}${shown}`;
}
