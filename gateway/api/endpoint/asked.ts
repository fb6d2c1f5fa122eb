/** One request to an endpoint, as the endpoint's handler sees it. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Context } from "hono";
import { InferenceError } from "#shared/errors.js";
import { RequestBudget } from "../../admission/budget.js";
import type { Inference } from "../../admission/inference.js";
import { TracedInference } from "../../admission/traced-inference.js";
import type { Bodies, BodyTerms } from "../../http/bodies.js";
import { readIdempotencyKey } from "../../http/headers.js";
import type { Owner } from "../../auth/owner/owner.js";
import { visible, type ModelDirectory } from "../../fleet/models.js";
import type { Limits } from "../../formats/limits.js";
import type { GatewayEnv } from "../../http/router.js";
import { askingOf, laterJudgement, type Guard } from "../../http/guard.js";
import type { Arrival, FrontDoor } from "../../http/traces/front-door.js";
import { noteModel } from "../../http/counts.js";
import type { RequestTrace } from "../../trace/request-trace.js";
import { traceAnswer } from "../../http/traces/traced-answer.js";
import { readerSpan } from "../../http/traces/reader-trace.js";
import { Caller } from "../../service/caller.js";
import type { RequestService } from "../../service/requests.js";
import type { RelaySpan } from "../../trace/relay-span.js";
import type { Endpoint } from "./endpoint.js";
import { readMembers, type Members, type MemberValues } from "./members.js";
import { readQuery, type Parameters, type ParameterValues } from "./parameters.js";

/** What reading a request takes. */
export interface AskedTerms {
  readonly guard: Guard;
  readonly bodies: Bodies;
  readonly limits: Limits;
  readonly onBug: (error: unknown, c: Context<GatewayEnv>) => void;
  /** Absent if the gateway makes no traces. */
  readonly frontDoor?: FrontDoor | undefined;
}

export class Asked<P extends Parameters = Parameters, M extends Members = Members> {
  #caller: Caller | undefined;
  #owner: Owner | undefined;
  /** Undefined if nobody has judged the request before. */
  readonly #judgeLater: (() => Promise<Owner | undefined>) | undefined;
  readonly query: ParameterValues<P>;
  readonly #endpoint: Endpoint;
  readonly #c: Context<GatewayEnv>;
  readonly #terms: AskedTerms;
  /** On `performance.now()`'s clock; 0 if the gateway makes no traces. */
  readonly #askedAt: number;

  /**
   * @param owner undefined if the guard lets every request in, or the path is open
   * @throws InferenceError if the request names no tenant, or its query is wrong
   */
  constructor(endpoint: Endpoint, c: Context<GatewayEnv>, terms: AskedTerms, owner: Owner | undefined) {
    this.#endpoint = endpoint;
    this.#c = c;
    this.#terms = terms;
    this.#owner = owner;
    this.#askedAt = terms.frontDoor === undefined ? 0 : performance.now();
    const { right, otherRight = "read", query, ignoresOthers, isWebSocket = false } = endpoint;
    if (owner !== undefined)
      this.#judgeLater = laterJudgement(terms.guard, askingOf(this.incoming), right ?? otherRight);
    this.#caller = right === undefined || isWebSocket ? undefined : this.#callerOf(owner);
    const isRead = query !== undefined && !isWebSocket;
    this.query = isRead ? readQuery(this.incoming.url ?? "", query as P, ignoresOthers) : ({} as ParameterValues<P>);
  }

  /** @throws TypeError if the endpoint declares no right, so that no tenant was read */
  get caller(): Caller {
    if (this.#caller === undefined) throw new TypeError(`${this.#endpoint.path} declares no right`);
    return this.#caller;
  }

  /** The models that exist for the caller. */
  models({ directory }: { readonly directory: ModelDirectory }): ModelDirectory {
    const mayUse = this.#owner?.mayUse ?? (() => true);
    return visible(directory, mayUse, ({ name }) => noteModel(this.outgoing, name));
  }

  get incoming(): IncomingMessage {
    return this.#c.env.incoming;
  }

  get outgoing(): ServerResponse {
    return this.#c.env.outgoing;
  }

  /**
   * What the request may take; undefined if the caller has no limits. The answer's headers say how
   * much is left.
   */
  budget(): RequestBudget | undefined {
    const { budget } = this.caller;
    if (budget === undefined) return undefined;
    const own = new RequestBudget(budget);
    const owner = this.#owner;
    if (owner !== undefined) own.onRefusal((error) => this.#terms.guard.audit?.limited(owner, error, this.incoming));
    own.onHeaders((headers) => {
      if (!this.outgoing.headersSent) for (const name in headers) this.outgoing.setHeader(name, headers[name] ?? "");
    });
    return own;
  }

  /**
   * Begins the trace of the request, if it is sampled.
   * @param model that the request names; by default the model of the path
   * @returns the calls of this request
   */
  traced(inference: Inference, protocol: Arrival["protocol"], model?: string): Inference {
    const trace = this.trace(protocol, model);
    return trace === undefined ? inference : new TracedInference(inference, trace);
  }

  /**
   * The same for a request that calls no inference here.
   * @returns undefined if the request is not sampled
   */
  trace(protocol: Arrival["protocol"], model = this.segment("model")): RequestTrace | undefined {
    const { frontDoor } = this.#terms;
    if (frontDoor === undefined) return undefined;
    const { headers, httpVersion } = this.incoming;
    const { method, path } = this.#endpoint;
    const trace = frontDoor.begin({ method, headers, httpVersion, protocol, model, path, startAt: this.#askedAt });
    if (trace !== undefined) traceAnswer(this.outgoing, trace);
    return trace;
  }

  /**
   * Begins the trace of a reader of a stream, if it is sampled.
   * @param id of the request that began the stream
   * @param from index of the reader's first record
   */
  readerSpan(
    streams: Pick<RequestService, "modelOf" | "traceOf">,
    id: string,
    from: number,
  ): Promise<RelaySpan | undefined> {
    const { caller } = this;
    const model = streams.modelOf(caller, id);
    // A reader that gets all records at once has waited for them before this call.
    const relayed = { request: id, model, tenant: caller.tenant, from, startAt: this.#askedAt };
    return readerSpan(this.trace("own", model), relayed, () => streams.traceOf(caller, id));
  }

  /** The limits of a request. */
  get limits(): Limits {
    return this.#terms.limits;
  }

  /** A segment of the path that the client has chosen, decoded once; "" if the path has none. */
  segment(name: string): string {
    return this.#c.req.param(name) ?? "";
  }

  /** @throws InferenceError */
  idempotencyKey(): string | undefined {
    return readIdempotencyKey(this.incoming.headers);
  }

  /**
   * Receives the members that the endpoint declares.
   * @throws InferenceError
   */
  members(): Promise<MemberValues<M>> {
    const { members = {}, mayBeEmpty } = this.#endpoint;
    return this.body({}, (bytes) => readMembers(bytes, members as M, mayBeEmpty));
  }

  /**
   * Receives the body.
   * @param terms limits other than those of a short JSON body
   * @throws InferenceError
   */
  body<T>(terms: Partial<BodyTerms>, read: (bytes: Buffer) => T | Promise<T>): Promise<T> {
    const { bodies, limits } = this.#terms;
    const encoding = this.incoming.headers["content-encoding"];
    const { tenant, budget } = this.#caller ?? Caller.nobody;
    const usual = { maxBytes: limits.controlBytes, encoding, owner: { tenant, most: budget?.bodyBytes } };
    return bodies.use(this.incoming, { ...usual, ...terms }, async (bytes) => {
      await this.judgeAgain();
      return read(bytes);
    });
  }

  /**
   * Judges the request once more if its body took long to come: the client may have kept it back
   * until its key was revoked.
   * @throws InferenceError
   */
  async judgeAgain(): Promise<void> {
    const owner = await this.#judgeLater?.();
    if (owner === undefined) return;
    this.#owner = owner;
    if (this.#caller !== undefined) this.#caller = Caller.of(owner);
  }

  /** @throws InferenceError if the request names no tenant, and has to */
  #callerOf(owner: Owner | undefined): Caller {
    if (owner !== undefined) return Caller.of(owner);
    try {
      const found = this.#terms.guard.ownerOf(askingOf(this.incoming));
      if (found instanceof Promise) throw new TypeError("a guard that asks has judged the request before");
      return Caller.of(found);
    } catch (error) {
      if (this.#endpoint.isTenantOptional === true && error instanceof InferenceError) return Caller.nobody;
      throw error;
    }
  }

  /** Logs an error that comes after the answer has begun. */
  onBug(error: unknown): void {
    this.#terms.onBug(error, this.#c);
  }
}
