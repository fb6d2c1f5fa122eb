/** The things of a tenant that requests name, such as a job. The first request makes each thing. */
import { setTimeout as delay } from "node:timers/promises";
import type { Answer, Question } from "../recording/exchange.js";
import { jsonOf } from "./document.js";

export type Ask = (question: Question) => Promise<Answer>;

interface Json {
  readonly id: string;
  readonly state: string;
  readonly data: readonly { readonly id: string }[];
}

const EVERY_MS = 20;
const PATIENCE_MS = 30_000;
const ENDED = ["completed", "failed", "cancelled", "expired"];

const infer = {
  inputs: ["INPUT0", "INPUT1"].map((name) => ({ name, datatype: "INT32", shape: [1, 16], data: Array(16).fill(1) })),
};
const tale = { text_input: "Once", temperature: 0, max_tokens: 4 };
const background = { prefer: "respond-async" };
const yearly = { cron: "0 0 1 1 *", job: { infer } };
const line = JSON.stringify({ custom_id: "a", method: "POST", url: "/v2/models/simple/infer", body: infer });
const form = `--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n${line}\r\n--b--\r\n`;

export class Things {
  readonly #ask: Ask;
  readonly #receiver: string;
  readonly #made = new Map<string, Promise<string>>();
  #count = 1_000;

  /**
   * @param ask sends requests of the tenant
   * @param receiver the URL of a server that takes webhooks
   */
  constructor(ask: Ask, receiver: string) {
    this.#ask = ask;
    this.#receiver = receiver;
  }

  /** Puts ids in the place of words such as `<job>`. */
  async fill(text: string): Promise<string> {
    let filled = text;
    for (const [word, name = ""] of text.matchAll(/<(\w+)>/g)) {
      if (this.#makers[name] !== undefined) filled = filled.replace(word, await this.#idOf(name));
    }
    return filled;
  }

  /** The exported state of a sequence. */
  async state(): Promise<Buffer> {
    return (
      await this.#ask({ method: "GET", path: await this.fill("/v2/models/accumulate/sequences/<sequence>/state") })
    ).body;
  }

  /** Forgets the things in a text, because a request has removed them. */
  forget(text: string): void {
    for (const [, name = ""] of text.matchAll(/<(\w+)>/g)) this.#made.delete(name);
  }

  #idOf(name: string): Promise<string> {
    const made = this.#made.get(name) ?? this.#makers[name]?.() ?? Promise.resolve(name);
    if (name !== "fresh") this.#made.set(name, made);
    return made;
  }

  readonly #makers: Readonly<Record<string, () => Promise<string>>> = {
    receiver: () => Promise.resolve(this.#receiver),
    // Longer than every limit of the test's fleet for JSON.
    long: () => Promise.resolve(" ".repeat(140_000)),
    fresh: () => Promise.resolve(String((this.#count += 1))),
    sequence: () => this.#sequence(),
    request: () => this.#request("tale-gpt/generate_stream", tale),
    cancelled: () => this.#cancelled(),
    tensors: () => this.#request("simple/infer", infer),
    job: () => this.#job("simple", { infer, labels: { team: "blue" } }),
    failed: () =>
      this.#job("picky", {
        infer: { inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [1_000_000] }] },
      }),
    delayed: () => this.#post("/v2/models/simple/jobs", { infer, delay: 86_400_000 }),
    dead: async () => (await this.#json({ method: "GET", path: "/v2/dead" })).data[0]?.id ?? "none",
    schedule: () => this.#post("/v2/models/simple/schedules", yearly),
    webhook: () => this.#post("/v2/webhooks", { url: this.#receiver, events: ["job.completed"] }),
    delivery: () => this.#delivery(),
    file: () => this.#post("/v1/files", form, { "content-type": "multipart/form-data; boundary=b" }),
    batch: () => this.#batch(),
  };

  async #sequence(): Promise<string> {
    const id = (this.#count += 1);
    const inputs = [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }];
    const step = (more: object) => ({ parameters: { sequence_id: id, ...more }, inputs });
    for (const more of [{ sequence_start: true }, {}]) {
      await this.#json({ method: "POST", path: "/v2/models/accumulate/infer", body: step(more) });
    }
    return String(id);
  }

  async #request(path: string, body: object): Promise<string> {
    const id = await this.#post(`/v2/models/${path}`, body, background);
    await this.#until(`/v2/requests/${id}`, ({ state }) => ENDED.includes(state));
    return id;
  }

  async #cancelled(): Promise<string> {
    const endless = { ...tale, max_tokens: 400, ignore_eos: true };
    const id = await this.#post("/v2/models/tale-gpt/generate_stream", endless, background);
    await this.#ask({ method: "DELETE", path: `/v2/requests/${id}` });
    return id;
  }

  async #job(model: string, body: object): Promise<string> {
    const id = await this.#post(`/v2/models/${model}/jobs`, body);
    await this.#until(`/v2/jobs/${id}`, ({ state }) => ENDED.includes(state));
    return id;
  }

  async #delivery(): Promise<string> {
    await this.#idOf("webhook");
    const id = await this.#job("simple", { infer });
    const { data } = await this.#until(`/v2/deliveries?job=${id}`, (list) => list.data.length > 0);
    return data[0]?.id ?? "";
  }

  async #batch(): Promise<string> {
    const file = await this.#idOf("file");
    const asked = { input_file_id: file, endpoint: "/v2/models/simple/infer", completion_window: "24h" };
    return this.#post("/v1/batches", asked);
  }

  async #post(path: string, body: Question["body"] & {}, headers: Question["headers"] & {} = {}): Promise<string> {
    return (await this.#json({ method: "POST", path, body, headers })).id;
  }

  /** @throws Error if the request is refused */
  async #json(question: Question): Promise<Json> {
    const answer = await this.#ask(question);
    if (answer.status >= 300) {
      throw new Error(`${question.method} ${question.path} gives ${answer.status} ${answer.body.toString()}`);
    }
    return jsonOf(answer.body) as Json;
  }

  async #until(path: string, isWanted: (json: Json) => boolean): Promise<Json> {
    const giveUpAt = Date.now() + PATIENCE_MS;
    for (;;) {
      const json = await this.#json({ method: "GET", path });
      if (isWanted(json)) return json;
      if (Date.now() > giveUpAt) throw new Error(`GET ${path} still gives ${JSON.stringify(json)}`);
      await delay(EVERY_MS);
    }
  }
}
