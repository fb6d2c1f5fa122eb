/**
 * One call of gRPC, from its head to its status, with what the gateway notes of it: facts for the
 * access log, figures, a trace, and the owner. It does for gRPC what node's request and response do
 * for HTTP.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Metadata } from "@grpc/grpc-js";
import { errorKinds, type ErrorCode, type InferenceError } from "#shared/errors.js";
import { RequestBudget } from "../../admission/budget.js";
import type { Inference } from "../../admission/inference.js";
import { TracedInference } from "../../admission/traced-inference.js";
import type { Owner } from "../../auth/owner/owner.js";
import { noted } from "../../facts/request-facts.js";
import type { AccessLog, AnswerFacts } from "../../facts/answer-facts.js";
import { visible, type ModelDirectory } from "../../fleet/models.js";
import type { BodyOwner } from "../../http/body.js";
import { countRefusal, type HttpCounts } from "../../http/counts.js";
import { admitCall, admitTo, hasCredential, laterJudgement, type Asking, type Guard } from "../../http/guard.js";
import { chooseRequestId } from "../../http/headers.js";
import { openReader } from "../../http/opened.js";
import type { FrontDoor } from "../../http/traces/front-door.js";
import { Caller } from "../../service/caller.js";
import type { RequestTrace } from "../../trace/request-trace.js";
import type { Arrivals } from "./arrivals.js";
import type { Access } from "./methods.js";

/** What the gateway notes of every call. */
export interface Surroundings {
  readonly guard: Guard;
  readonly counts: HttpCounts;
  /** Absent if there is no access log. */
  readonly access: AccessLog | undefined;
  /** Absent if the gateway makes no traces. */
  readonly frontDoor: FrontDoor | undefined;
}

/** The head of a call, as the parts of HTTP read a request. */
interface Head {
  readonly method: "POST";
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly socket: { readonly remoteAddress: string | undefined };
}

export class Exchange {
  readonly head: Head;
  readonly facts: AnswerFacts | undefined;
  readonly requestId: string;
  bytesIn = 0;
  bytesOut = 0;
  /** The model of the call; empty if it has none that is known. */
  #model = "";
  #owner: Owner | undefined;
  #trace: RequestTrace | undefined;
  /** The public id of the inference; undefined until it is known. */
  answeredAs: string | undefined;
  /** The id of the request that is read from the call's message; empty until it is known. */
  messageId = "";
  /** Judges the caller again if the last judgement is old; undefined before the first. */
  #judgeLater: (() => Promise<Owner | undefined>) | undefined;
  readonly #surroundings: Surroundings;
  readonly #metadata: Metadata;
  /** The stream of which this is a request; undefined for a call. */
  readonly #whole: Exchange | undefined;
  readonly #since = performance.now();
  hasEnded = false;
  /** Whether the handler of the method has begun. */
  isHandled = false;
  /** Whether the deadline of the call has passed. */
  isOverdue = false;
  /** The messages of the call; undefined before its caller has been judged. */
  arrivals: Arrivals | undefined;

  /**
   * @param path of the method
   * @param peer the address of the other side
   * @param whole the stream of which this is a request; its head is the request's, too
   */
  constructor(
    surroundings: Surroundings,
    path: string,
    metadata: Metadata,
    peer: string | undefined,
    whole?: Exchange,
  ) {
    this.#surroundings = surroundings;
    this.#metadata = metadata;
    this.#whole = whole;
    this.head = whole?.head ?? headOf(path, metadata, peer);
    this.requestId = whole?.requestId ?? chooseRequestId(this.head.headers);
    const { method, socket, headers } = this.head;
    this.facts = surroundings.access?.hear({ socket, method, target: path, headers });
    if (this.facts !== undefined) {
      this.facts.id = this.requestId;
      this.facts.route = path;
      this.facts.tenant = whole?.facts?.tenant;
    }
    if (whole === undefined) surroundings.counts.open(1);
  }

  /** @returns a request of this stream: the log has a line for each, and the figures one stream */
  part(): Exchange {
    return new Exchange(this.#surroundings, this.head.url, this.#metadata, undefined, this);
  }

  /** The header of a call by its name; undefined if the client gave none. */
  header(name: string): string | undefined {
    const text = this.head.headers[name];
    return typeof text === "string" ? text : undefined;
  }

  /**
   * Judges the caller.
   * @throws InferenceError
   */
  async judge(access: Access): Promise<void> {
    const { guard } = this.#surroundings;
    const asking = this.asking();
    const owner = await this.#ownerFor(guard, asking, access);
    this.#owner = owner;
    if (this.facts !== undefined) this.facts.tenant = owner?.tenant;
    guard.restricted?.check(access.api, this.head.headers, "grpc");
    if (access.right !== undefined) this.#judgeLater = laterJudgement(guard, asking, access.right);
  }

  /** Judges the caller of a stream again, because a key may have lost a model meanwhile. */
  async refresh(): Promise<void> {
    this.#owner = (await this.#judgeLater?.()) ?? this.#owner;
  }

  /**
   * @returns a function to call when the stream has ended
   * @throws InferenceError `stream_limit`
   */
  countReader(): () => void {
    const { guard } = this.#surroundings;
    return this.#owner === undefined ? () => undefined : openReader(guard, this.#owner, this.head);
  }

  /**
   * @param end called if the key is good no longer
   * @returns a function to call when the stream has ended
   */
  watchKey(end: (error: InferenceError) => void): () => void {
    return this.#owner === undefined ? () => undefined : this.#surroundings.guard.watch(this.#owner, end);
  }

  #ownerFor(
    guard: Guard,
    asking: Asking,
    { right, otherRight = "read", open, admits }: Access,
  ): Owner | Promise<Owner> | undefined {
    const judge = admits === true ? admitTo : admitCall;
    if (guard.asks && open !== undefined && guard.open.has(open)) {
      // Which models there are depends on who asks.
      return open === "metadata" && hasCredential(this.head.headers) ? judge(guard, asking, "any") : undefined;
    }
    // An answer that is the same for every tenant needs none.
    if (right === undefined && !guard.asks) return undefined;
    return judge(guard, asking, right ?? otherRight);
  }

  /** What says whose the call is. */
  asking(): Asking {
    const { headers, url, socket } = this.head;
    const metadata = this.#metadata;
    const distinct = () =>
      Object.fromEntries(
        Object.keys(headers).map((name) => [name, metadata.get(name).map((value) => value.toString())]),
      );
    return { headers, target: url, peer: socket.remoteAddress, distinct, facts: this.facts };
  }

  get #ownerNow(): Owner | undefined {
    return this.#whole === undefined ? this.#owner : this.#whole.#owner;
  }

  get caller(): Caller {
    const owner = this.#ownerNow;
    return owner === undefined ? Caller.nobody : Caller.of(owner);
  }

  /** Whose memory the messages of the call take. */
  get bodyOwner(): BodyOwner {
    const { tenant, budget } = this.caller;
    return { tenant, most: budget?.bodyBytes };
  }

  /** The models that exist for the caller. */
  models(directory: ModelDirectory): ModelDirectory {
    return visible(directory, this.caller.mayUse, ({ name }) => (this.#model = name));
  }

  /** What a request may take; undefined if the caller has no limits. */
  budget(): RequestBudget | undefined {
    const { budget } = this.caller;
    if (budget === undefined) return undefined;
    const own = new RequestBudget(budget);
    const owner = this.#ownerNow;
    const { audit } = this.#surroundings.guard;
    if (owner !== undefined) own.onRefusal((error) => audit?.limited(owner, error, this.head));
    return own;
  }

  /** @returns the calls of a request, which note what they learn and follow the request's trace */
  calls(inference: Inference, model: string): Inference {
    const calls = noted(inference, this.facts);
    const { frontDoor } = this.#surroundings;
    const { headers, url: path, method } = this.head;
    const startAt = this.#since;
    this.#trace = frontDoor?.begin({ method, headers, path, httpVersion: "2", protocol: "grpc", model, startAt });
    return this.#trace === undefined ? calls : new TracedInference(calls, this.#trace);
  }

  /** Notes a refusal of a key or of a right. */
  refused(error: unknown): void {
    this.#surroundings.guard.audit?.refused(error, this.head, this.requestId);
  }

  /** Ends the call of a client that has left, or whose deadline has passed. */
  left(): void {
    this.end(this.isOverdue ? "deadline_exceeded" : "cancelled", false);
  }

  /**
   * Ends the call.
   * @param code of the error that the client gets; undefined if all went well
   * @param isWhole whether the status has reached the client's connection
   */
  end(code: ErrorCode | undefined, isWhole = true): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    const { counts } = this.#surroundings;
    const { facts, bytesIn, bytesOut } = this;
    const status = code === undefined ? 200 : errorKinds[code].status;
    if (this.#whole === undefined) {
      counts.open(-1);
      counts.answered(this.head.url, "POST", status, performance.now() - this.#since, { bytesIn, bytesOut });
    }
    if (code !== undefined) countRefusal({ code, status }, this.#model);
    if (code !== undefined) this.#trace?.failed(code);
    this.#trace?.end(status);
    if (facts === undefined) return;
    facts.begin(status);
    facts.code ??= code;
    facts.model ??= this.#model === "" ? undefined : this.#model;
    facts.bytesIn = bytesIn;
    facts.bytesOut = bytesOut;
    facts.isWhole = isWhole;
    facts.end();
  }
}

function headOf(url: string, metadata: Metadata, remoteAddress: string | undefined): Head {
  const headers = metadata.getMap() as IncomingHttpHeaders;
  return { method: "POST", url, headers, socket: { remoteAddress } };
}
