/** Makes the calls of one sampled request. */
import { InferenceError } from "#shared/errors.js";
import type { OpenStream } from "../stream/open-stream.js";
import type { RequestTrace } from "../trace/request-trace.js";
import { RelaySpan } from "../trace/relay-span.js";
import {
  isGeneration,
  type GenerationRequest,
  type Inference,
  type InferenceOutcome,
  type InferenceRequest,
  type StreamingRequest,
} from "./inference.js";

export class TracedInference implements Inference {
  readonly #inner: Inference;
  readonly #trace: RequestTrace;

  constructor(inner: Inference, trace: RequestTrace) {
    this.#inner = inner;
    this.#trace = trace;
  }

  async infer(request: InferenceRequest): Promise<InferenceOutcome> {
    const outcome = await this.#inner.infer({ ...request, trace: this.#trace });
    if (outcome.kind === "error") this.#trace.failed(outcome.code);
    return outcome;
  }

  inferLater(request: InferenceRequest): Promise<string> {
    return this.#noting(this.#inner.inferLater({ ...request, trace: this.#trace }));
  }

  async generate(request: StreamingRequest): Promise<OpenStream> {
    const { model } = request;
    if (isGeneration(request)) this.#noteGeneration(request);
    const stream = await this.#noting(this.#inner.generate({ ...request, trace: this.#trace }));
    const trace = this.#trace;
    const relayed = { request: stream.id, model: model.name, version: model.version, tenant: request.tenant };
    return {
      ...stream,
      read: (from, signal) => new RelaySpan(trace, { ...relayed, from }).follow(stream.read(from, signal)),
    };
  }

  #noteGeneration({ model, spec }: GenerationRequest): void {
    const { maxTokens, temperature, seed } = spec.sampling;
    this.#trace.note({
      "gen_ai.operation.name": spec.prompt.kind === "chat" ? "chat" : "text_completion",
      "gen_ai.provider.name": "baton",
      "gen_ai.request.model": model.name,
      "gen_ai.request.max_tokens": maxTokens ?? undefined,
      "gen_ai.request.temperature": temperature,
      "gen_ai.request.seed": seed,
    });
  }

  async #noting<T>(call: Promise<T>): Promise<T> {
    try {
      return await call;
    } catch (error) {
      this.#trace.failed(error instanceof InferenceError ? error.code : "internal");
      throw error;
    }
  }
}
