/**
 * The short way of what most requests are, an inference of a tensor model: recognised by its target alone and answered without the objects that router and
 * framework make for every request. Whatever is unusual about a request goes the framework's way. Both ways have the same handler and the same answers.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServedModel } from "#shared/contract/announcement.js";
import type { ModelExchange } from "./exchange.js";
import { inferOverHttp } from "./infer.js";
import { errorReply, refusalReply, send, type Reply } from "./reply.js";

export interface DirectOptions extends Omit<ModelExchange, "incoming" | "outgoing" | "model"> {
  /** @throws InferenceError */
  readonly find: (name: string, version: string | undefined) => ServedModel;
  readonly chooseRequestId: (given: string | string[] | undefined) => string;
  /** Told of each failure that is a bug and no refusal. */
  readonly onBug: (error: unknown, incoming: IncomingMessage, requestId: string) => void;
}

/** @returns whether the request is answered, now or later; if not, nothing was done about it. */
export type DirectRoute = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean;

const plainTarget = /^\/v2\/models\/([A-Za-z0-9._-]{1,128})(?:\/versions\/([0-9]+))?\/infer$/;
/** The framework looks closer at any other. */
const plainHost = /^[a-z0-9._-]+(?::(?:[1-5]\d{3,4}|[6-9]\d{3}))?$/;
/** The rest of a body that nobody reads may come for this long; then the connection ends. */
const UNREAD_MS = 500;

export function directRoute({ find, chooseRequestId, onBug, ...rest }: DirectOptions): DirectRoute {
  const tensorModel = (name: string, version: string | undefined): ServedModel | undefined => {
    try {
      const model = find(name, version);
      return model.generator === undefined ? model : undefined;
    } catch {
      return undefined; // the framework's way ends in the same refusal, and says it
    }
  };
  const answer = async (exchange: ModelExchange): Promise<void> => {
    const { incoming, outgoing } = exchange;
    const requestId = chooseRequestId(incoming.headers["x-request-id"]);
    let reply: Reply | undefined;
    try {
      reply = await inferOverHttp(exchange);
    } catch (error) {
      reply = refusalReply(error);
      if (reply === undefined) onBug(error, incoming, requestId);
    }
    send(outgoing, reply ?? errorReply("internal", "internal error"), requestId);
    if (!incoming.readableEnded) endUnread(incoming);
  };
  return (incoming, outgoing) => {
    if (incoming.method !== "POST" || !plainHost.test(incoming.headers.host ?? "")) return false;
    const [target, name = "", version] = plainTarget.exec(incoming.url ?? "") ?? [];
    if (target === undefined || name.includes("..")) return false;
    const model = tensorModel(name, version);
    if (model === undefined) return false;
    answer({ incoming, outgoing, model, ...rest }).catch((error: unknown) => {
      onBug(error, incoming, "");
      outgoing.destroy();
    });
    return true;
  };
}

/** Of a request that is answered. */
export function endUnread(incoming: IncomingMessage): void {
  incoming.resume();
  setTimeout(() => {
    if (!incoming.readableEnded) incoming.socket.destroySoon();
  }, UNREAD_MS).unref();
}
