/**
 * Opens each call at its head: its caller is judged before the gateway reads any byte of a message,
 * as over HTTP.
 */
import { ServerInterceptingCall, type Metadata, type ServerInterceptor } from "@grpc/grpc-js";
import { fixedError } from "#shared/errors.js";
import { isRefusal } from "../../formats/errors.js";
import type { Bodies } from "../../http/bodies.js";
import type { Log } from "../../http/router.js";
import { Arrivals } from "./arrivals.js";
import { Exchange, type Surroundings } from "./exchange.js";
import type { Access } from "./methods.js";
import type { Sessions } from "./sessions.js";
import { codeOf, statusOf } from "./status.js";

export interface OpeningTerms extends Surroundings {
  readonly bodies: Bodies;
  readonly sessions: Sessions;
  readonly log: Log;
}

/** A method as its calls are opened. */
export interface MethodTerms {
  readonly access: Access;
  /** Longest message. */
  readonly mostBytes: number;
  /** Whether a call has any number of messages. */
  readonly takesMany: boolean;
}

/** Metadata of a call, in bytes, as for the head of a request. */
const MOST_METADATA = 16 * 1024;

/** The exchanges of the calls that have been opened, by the metadata of the call. */
const exchanges = new WeakMap<Metadata, Exchange>();

/** The exchange of a call that its handler answers from now on. */
export function exchangeOf({ metadata }: { readonly metadata: Metadata }): Exchange {
  const exchange = exchanges.get(metadata);
  if (exchange === undefined) throw new TypeError("the call has not been opened");
  exchange.isHandled = true;
  exchange.arrivals?.handled();
  return exchange;
}

/** @param termsOf gives the terms of a method by its path */
export function opener(
  terms: () => OpeningTerms,
  termsOf: (path: string) => MethodTerms | undefined,
): ServerInterceptor {
  return ({ path }, call) => {
    const { sessions, bodies, ...others } = terms();
    const { access, mostBytes, takesMany } = termsOf(path) ?? {};
    let exchange: Exchange | undefined;
    return new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata(metadata, proceed) {
            sessions.complete(call, metadata);
            const opened = new Exchange(others, path, metadata, call.getConnectionInfo().remoteAddress);
            exchange = opened;
            exchanges.set(metadata, opened);
            const refuse = (error: unknown): void => {
              if (opened.hasEnded) return;
              noteFailure(error, opened, others);
              call.sendStatus(statusOf(error, opened.requestId));
              opened.end(codeOf(error));
            };
            sessions.onDeadline(call, () => {
              opened.isOverdue = true;
              call.sendStatus(statusOf(fixedError("deadline_exceeded", "usual"), opened.requestId));
            });
            judge(opened, access).then(() => {
              if (opened.hasEnded) return;
              opened.arrivals = new Arrivals(bodies.room(opened.bodyOwner), mostBytes ?? 0, takesMany !== true);
              sessions.follow(call, opened.arrivals, refuse);
              proceed(metadata);
            }, refuse);
          },
          onReceiveMessage(message, proceed) {
            exchange?.arrivals?.give(() => proceed(message));
          },
          onCancel() {
            exchange?.arrivals?.close();
            if (exchange?.isHandled === false) exchange.left();
          },
        }),
    });
  };
}

/** @throws InferenceError */
async function judge(exchange: Exchange, access: Access | undefined): Promise<void> {
  checkMetadata(exchange);
  if (access === undefined) throw new TypeError("the method has no terms");
  await exchange.judge(access);
}

/** @throws InferenceError */
function checkMetadata({ head }: Exchange): void {
  let length = 0;
  for (const name in head.headers) length += name.length + (head.headers[name]?.length ?? 0);
  if (length > MOST_METADATA) throw fixedError("invalid_argument", "headTooLarge");
}

/** Notes a refusal of a key in the audit, and a bug in the log. */
export function noteFailure(error: unknown, exchange: Exchange, { log }: Pick<OpeningTerms, "log">): void {
  if (isRefusal(error)) exchange.refused(error);
  else log({ err: error, requestId: exchange.requestId, path: exchange.head.url }, "request handler failed");
}
