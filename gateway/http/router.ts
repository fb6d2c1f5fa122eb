/**
 * Answers every path that the framework routes: with the handler of the method, with 405 to any
 * other method, and with the error's reply if the handler throws.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { fixedError, type InferenceError } from "#shared/errors.js";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { Context, Hono } from "hono";
import { errorReply, errorShapeOf, isRefusal, methodNotAllowed } from "../formats/errors.js";
import type { Reply } from "../formats/reply.js";
import { factsOf } from "../facts/answer-facts.js";
import { noteRoute } from "./counts.js";
import { askingOf, type Guard } from "./guard.js";
import { send } from "./send.js";
import { noteFailure } from "./traces/traced-answer.js";

/**
 * Values that Hono passes to each handler: node's request and response, and the id of the request.
 */
export interface GatewayEnv {
  Bindings: { incoming: IncomingMessage; outgoing: ServerResponse };
  Variables: { requestId: string };
}

/** Answers one request. Returns undefined if the handler has already sent the answer. */
export type Handler = (c: Context<GatewayEnv>) => Reply | undefined | Promise<Reply | undefined>;

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Takes fields and then the line, as pino's methods do. */
export type Log = (fields: Readonly<Record<string, unknown>>, line: string) => void;

export class Router {
  readonly #app: Hono<GatewayEnv>;
  /** Called with each failure that is a bug and no refusal. The client learns nothing about it. */
  readonly onBug: (error: unknown, c: Context<GatewayEnv>) => void;

  readonly #guard: Guard;

  constructor(app: Hono<GatewayEnv>, guard: Guard, onBug: (error: unknown, c: Context<GatewayEnv>) => void) {
    this.#app = app;
    this.#guard = guard;
    this.onBug = onBug;
  }

  /**
   * Adds a path with the handlers of all its methods. If several paths match, the first added path
   * answers.
   */
  add(path: string, handlers: Readonly<Partial<Record<Method, Handler>>>): void {
    const route = path.replaceAll(/\{.*?\}/g, "");
    for (const [method, handler] of Object.entries(handlers)) {
      this.#app.on(method, path, (c) => {
        noteAsked(c, route);
        return this.#answer(handler, c);
      });
    }
    this.refuseAll(path, (c) => {
      noteAsked(c, route);
      return methodNotAllowed(c.req.method, c.req.path);
    });
  }

  /** Adds a path that refuses every request; a request without a credential, for that reason. */
  refuseAll(path: string, refusal: (c: Context<GatewayEnv>) => InferenceError): void {
    const refuse = (c: Context<GatewayEnv>) => {
      throw refusal(c);
    };
    this.#app.all(path, (c) => this.#answer((asked) => this.#judged(asked, () => refuse(asked)), c));
  }

  /** Answers a request that no path matches. */
  async refuseUnknown(c: Context<GatewayEnv>): Promise<Response> {
    const notFound = () => errorReply(fixedError("not_found", "usual"));
    return this.#answer((asked) => this.#judged(asked, notFound), c);
  }

  #judged(c: Context<GatewayEnv>, answer: () => Reply): Reply | Promise<Reply> {
    if (!this.#guard.asks) return answer();
    const owner = this.#guard.ownerOf(askingOf(c.env.incoming));
    return owner instanceof Promise ? owner.then(answer) : answer();
  }

  async #answer(handler: Handler, c: Context<GatewayEnv>): Promise<Response> {
    try {
      const reply = await handler(c);
      return reply === undefined ? RESPONSE_ALREADY_SENT : send(c.env.outgoing, reply);
    } catch (error) {
      return this.refuse(error, c);
    }
  }

  /** Answers a request whose handler failed. */
  refuse(error: unknown, c: Context<GatewayEnv>): Response {
    noteFailure(c.env.outgoing, error);
    if (isRefusal(error)) this.#guard.audit?.refused(error, c.env.incoming, c.get("requestId"));
    else this.onBug(error, c);
    return send(c.env.outgoing, errorReply(error, errorShapeOf(c.req.path)));
  }
}

/** Notes the declared path of a request, and the model that it names. */
function noteAsked(c: Context<GatewayEnv>, route: string): void {
  noteRoute(c.env.outgoing, route);
  const facts = factsOf(c.env.incoming);
  if (facts === undefined) return;
  facts.route = route;
  facts.model = c.req.param("model");
  facts.version = c.req.param("version");
}

/**
 * Returns the path of a request's target without decoding or resolving, so that an escaped slash or
 * dot never chooses the route.
 */
export function pathOf(target: string): string {
  const path = target.startsWith("/") ? target : target.replace(/^[a-z]+:\/\/[^/?#]*/i, "");
  const end = path.search(/[?#]/);
  return end === -1 ? path : path.slice(0, end);
}
