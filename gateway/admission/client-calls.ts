/**
 * Gateways publish over NATS for which models clients wait, so that batches leave room to clients.
 * Nothing depends on a message. If a message gets lost, or an older gateway publishes none, batches
 * fill the workers of their models, and clients' requests still go before theirs in the queue. A
 * forged message slows batches down for five seconds.
 */
import { CLIENTS_SUBJECT } from "#shared/queue/keys.js";
import type { Bus } from "#shared/nats/connect.js";
import type { Inference, InferenceOutcome, InferenceRequest, StreamingRequest } from "./inference.js";
import type { OpenStream } from "../stream/open-stream.js";

/** A gateway names a model at most this often, in ms. */
const CALL_EVERY_MS = 1_000;
/**
 * Clients count as waiting for this long after a message, in ms, so that single requests count too.
 */
const HEARD_MS = 5_000;
/** Most model names to remember. Only forged messages can name more. */
const MOST_NAMES = 10_000;

/** Publishes the model of each request that passes through to admission. */
export class CallingInference implements Inference {
  readonly #inner: Inference;
  readonly #bus: Pick<Bus, "publish">;
  /** When this gateway last named each model, on `performance.now()`'s clock. */
  readonly #calledAt = new Map<string, number>();

  constructor(inner: Inference, bus: Pick<Bus, "publish">) {
    this.#inner = inner;
    this.#bus = bus;
  }

  infer(request: InferenceRequest): Promise<InferenceOutcome> {
    this.#call(request.model.name);
    return this.#inner.infer(request);
  }

  inferLater(request: InferenceRequest): Promise<string> {
    return this.#inner.inferLater(request);
  }

  generate(request: StreamingRequest): Promise<OpenStream> {
    if (!request.background) this.#call(request.model.name);
    return this.#inner.generate(request);
  }

  #call(model: string): void {
    const now = performance.now();
    if (now - (this.#calledAt.get(model) ?? -Infinity) < CALL_EVERY_MS) return;
    this.#calledAt.set(model, now);
    this.#bus.publish(CLIENTS_SUBJECT, Buffer.from(model));
  }
}

/** The models for which clients wait, by the messages of gateways. */
export class WaitingClients {
  /** On `performance.now()`'s clock. */
  readonly #heardAt = new Map<string, number>();

  async listen(bus: Pick<Bus, "subscribe">): Promise<void> {
    await bus.subscribe(CLIENTS_SUBJECT, (message) => this.#hear(message.toString("utf8")));
  }

  waitFor(model: string): boolean {
    return performance.now() - (this.#heardAt.get(model) ?? -Infinity) < HEARD_MS;
  }

  #hear(model: string): void {
    if (this.#heardAt.size >= MOST_NAMES && !this.#heardAt.has(model)) this.#heardAt.clear();
    this.#heardAt.set(model, performance.now());
  }
}
