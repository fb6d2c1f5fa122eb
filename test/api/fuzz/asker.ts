/** Sends the requests of one tenant, with the ids of its things in the place of words. */
import type { Agent } from "node:http";
import { exchange, type Answer, type Question } from "../recording/exchange.js";
import type { Case } from "./cases.js";
import { Things } from "./things.js";

export interface Site {
  /** The gateway's URL. */
  readonly url: string;
  /** The URL of a server that takes webhooks. */
  readonly receiver: string;
  readonly agent: Agent;
}

export class Asker {
  readonly #site: Site;
  readonly #tenant: string;
  readonly #things: Things;

  constructor(site: Site, tenant: string) {
    this.#site = site;
    this.#tenant = tenant;
    this.#things = new Things((question) => this.ask(question), site.receiver);
  }

  ask(question: Question): Promise<Answer> {
    const headers = { "x-tenant": this.#tenant, ...question.headers };
    return exchange(this.#site.url, { ...question, headers }, this.#site.agent);
  }

  async answerTo({ method, path, query, headers, body }: Case): Promise<Answer> {
    const pairs: string[] = [];
    for (const [name, value] of query) {
      pairs.push(`${encodeURIComponent(name)}=${encodeURIComponent(await this.#things.fill(value))}`);
    }
    const target = `${await this.#things.fill(path)}${pairs.length > 0 ? "?" : ""}${pairs.join("&")}`;
    const answer = await this.ask({ method, path: target, headers, body: await this.#filled(body) });
    if (method === "DELETE") this.#things.forget(path);
    return answer;
  }

  async #filled(body: string): Promise<string | Buffer> {
    if (!body.startsWith("<state>")) return this.#things.fill(body);
    const state = await this.#things.state();
    const [, ...rests] = body.split("<state>");
    return Buffer.concat(rests.flatMap((rest) => [state, Buffer.from(rest)]));
  }
}
