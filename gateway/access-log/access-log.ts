/**
 * The access log: a line for each request when its answer has ended. The facts of a request begin
 * when its first bytes are parsed, and every way to answer notes what it learns there.
 */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Timings } from "#shared/contract/timings.js";
import type { ErrorCode } from "#shared/errors.js";
import type { AccessLog, AnswerFacts, Heard } from "../facts/answer-facts.js";
import type { Guard } from "../http/guard.js";
import type { Peers } from "../http/peers.js";
import { pathOf } from "../http/router.js";
import { Clients } from "./clients.js";
import { exchangeClasses } from "./exchange.js";
import { lineOf } from "./line.js";
import { protocolOf } from "./protocol.js";

export interface AccessLogSettings {
  /** The name of this process. */
  readonly gateway: string;
  readonly peers: Peers;
  /** @returns the name of the worker with this boot; undefined if it is gone */
  readonly workerOf: (boot: string) => string | undefined;
  /** Takes whole lines in ASCII. */
  readonly write: (line: string) => void;
}

/** Models have no other names. */
const MODEL = /^[A-Za-z0-9._-]{1,128}$/;

export function openAccessLog({ peers, ...rest }: AccessLogSettings): AccessLog {
  const settings = { ...rest, clients: new Clients(peers) };
  return {
    classes: exchangeClasses((incoming) => new Facts(settings, incoming)),
    hear: ({ socket, method, target, headers = {}, since }: Heard) =>
      new Facts(settings, { socket, method, url: target, headers }, since),
  };
}

/** Lets a guard note whose each request is. */
export function notingGuard(guard: Guard): Guard {
  return {
    ...guard,
    ownerOf(asking) {
      const owner = guard.ownerOf(asking);
      const { facts } = asking;
      if (facts === undefined) return owner;
      if (!(owner instanceof Promise)) {
        facts.tenant = owner.tenant;
        return owner;
      }
      return owner.then((found) => {
        facts.tenant = found.tenant;
        return found;
      });
    },
  };
}

type FactsSettings = Omit<AccessLogSettings, "peers"> & { readonly clients: Clients };

/** The members of node's request that a line needs. */
type Head = Pick<IncomingMessage, "method" | "url"> & Pick<Heard, "socket"> & { readonly headers: IncomingHttpHeaders };

class Facts implements AnswerFacts {
  tenant: string | undefined;
  model: string | undefined;
  version: string | undefined;
  sequence: string | undefined;
  step: number | undefined;
  request: string | undefined;
  code: ErrorCode | undefined;
  replayed: boolean | undefined;
  timings: Timings | undefined;
  trace: string | undefined;
  records: number | undefined;
  tokensIn: number | undefined;
  tokensOut: number | undefined;
  route: string | undefined;
  id: string | undefined;
  bytesIn = 0;
  bytesOut = 0;
  isWhole = false;
  readonly #settings: FactsSettings;
  readonly #head: Head;
  /** Read now, because a socket that has closed forgets it. */
  readonly #peer: string | undefined;
  readonly #beganAt: number;
  #status: number | undefined;
  #firstAt: number | undefined;
  #hasEnded = false;

  /** @param head node's request, which has its head soon */
  constructor(settings: FactsSettings, head: Head, since = performance.now()) {
    this.#settings = settings;
    this.#beganAt = since;
    this.#head = head;
    this.#peer = head.socket.remoteAddress;
  }

  begin(status: number): void {
    this.#status = status;
    this.#firstAt = performance.now();
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const { gateway, clients, workerOf, write } = this.#settings;
    const { method, url, headers } = this.#head;
    const { timings, model } = this;
    const path = url === undefined || url === "" ? undefined : pathOf(url);
    write(
      lineOf({
        time: Date.now(),
        id: this.id,
        request: this.request,
        gateway,
        tenant: this.tenant,
        client: this.#peer === undefined ? undefined : clients.addressOf(this.#peer, headers),
        protocol: path && protocolOf(path),
        method: method ?? undefined,
        route: this.route,
        path,
        model: model !== undefined && MODEL.test(model) ? model : undefined,
        version: this.version,
        sequence: this.sequence,
        step: this.step,
        status: this.#status,
        code: this.code,
        replayed: this.replayed,
        bytesIn: this.bytesIn,
        bytesOut: this.bytesOut,
        ms: performance.now() - this.#beganAt,
        firstMs: this.#firstAt && this.#firstAt - this.#beganAt,
        timings,
        worker: timings && (workerOf(timings.boot) ?? timings.boot),
        records: this.records,
        tokensIn: this.tokensIn,
        tokensOut: this.tokensOut,
        isWhole: this.isWhole,
        trace: this.trace,
        agent: headers["user-agent"],
      }),
    );
  }
}
