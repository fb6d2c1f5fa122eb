/**
 * The facts of an HTTP request and its answer, which the access log writes in one line. Node's
 * request has them if there is an access log.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { RequestFacts } from "./request-facts.js";
import type { Reply } from "../formats/reply.js";

export interface AnswerFacts extends RequestFacts {
  /** The declared path. */
  route: string | undefined;
  /** The id that the answer has as `x-request-id`. */
  id: string | undefined;
  /** Bytes of the request's body that have come, and bytes of the answer's body that have left. */
  bytesIn: number;
  bytesOut: number;
  /** Whether the answer has been written to its end. */
  isWhole: boolean;
  /** To be called when the first byte of the answer is written. */
  begin(status: number): void;
  /** Writes the line; later calls do nothing. */
  end(): void;
}

/** A request that is parsed on the socket, or the connection alone if its bytes are no request. */
export interface Heard {
  readonly socket: Pick<Socket, "remoteAddress">;
  readonly method?: string | undefined;
  readonly target?: string | undefined;
  readonly headers?: IncomingHttpHeaders;
  /** When the head came, on the clock of `performance.now()`; absent: now. */
  readonly since?: number | undefined;
}

export interface AccessLog {
  /** The classes for node's server, whose objects note facts and end them with the answer. */
  readonly classes: {
    readonly IncomingMessage: typeof IncomingMessage;
    readonly ServerResponse: typeof ServerResponse;
  };
  hear(heard: Heard): AnswerFacts;
}

/** @returns undefined if there is no access log */
export function factsOf(incoming: IncomingMessage): AnswerFacts | undefined {
  return "facts" in incoming ? (incoming as { readonly facts: AnswerFacts }).facts : undefined;
}

/** Notes a reply that is written past node's response. */
export function noteReply(facts: AnswerFacts, { status, code }: Reply, id: string, bytes: number): void {
  facts.begin(status);
  facts.code ??= code;
  facts.id = id;
  facts.bytesOut = bytes;
}
