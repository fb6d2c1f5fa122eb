/** Node's classes of request and response, which note the facts of an exchange as it runs. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { AccessLog, AnswerFacts } from "../facts/answer-facts.js";
import { MeasuredRequest, MeasuredResponse } from "../http/measured.js";

/** @param hear begins the facts of a request, before its head is known */
export function exchangeClasses(hear: (incoming: IncomingMessage) => AnswerFacts): AccessLog["classes"] {
  class NotedRequest extends MeasuredRequest {
    readonly facts: AnswerFacts;

    constructor(socket: Socket) {
      super(socket);
      this.facts = this.bytes = hear(this);
    }
  }

  class NotedResponse extends MeasuredResponse<NotedRequest> {
    constructor(...given: ConstructorParameters<typeof ServerResponse<NotedRequest>>) {
      super(...given);
      const { facts } = this.req;
      this.once("close", () => {
        // Node emits `finish` even if the connection has closed before the bytes could leave.
        facts.isWhole ||= this.writableFinished;
        facts.end();
      });
    }

    override writeHead(...given: unknown[]): this {
      const { facts } = this.req;
      facts.begin(Number(given[0]));
      super.writeHead(...(given as [number]));
      const headers = given.at(-1);
      facts.id = this.#header("x-request-id", headers) ?? facts.id;
      facts.request = this.#header("baton-request-id", headers) ?? facts.request;
      return this;
    }

    /** @param given headers that node writes without keeping them */
    #header(name: string, given: unknown): string | undefined {
      const value: unknown =
        typeof given === "object" && given !== null && name in given ? Reflect.get(given, name) : this.getHeader(name);
      return typeof value === "string" ? value : undefined;
    }
  }

  return { IncomingMessage: NotedRequest, ServerResponse: NotedResponse as typeof ServerResponse };
}
