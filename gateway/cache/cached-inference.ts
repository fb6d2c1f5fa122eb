/** Answers requests to models with `response_cache` from the cache, for every door. */
import type { Inference, InferenceOutcome, InferenceRequest, StreamingRequest } from "../admission/inference.js";
import type { OpenStream } from "../stream/open-stream.js";
import { AnswerCache, type CacheSettings } from "./answer-cache.js";

export class CachedInference implements Inference {
  readonly #inner: Inference;
  readonly #cache: AnswerCache;

  constructor(inner: Inference, settings: CacheSettings) {
    this.#inner = inner;
    this.#cache = new AnswerCache(settings);
  }

  infer(request: InferenceRequest): Promise<InferenceOutcome> {
    const { model, idempotencyKey } = request;
    // A key has a record of its own, by which a second use of the key finds the first.
    const mayCache = model.cachesAnswers === true && model.sequence === undefined && idempotencyKey === undefined;
    return mayCache ? this.#cache.infer(request, this.#inner) : this.#inner.infer(request);
  }

  /** Runs always, because the client's id of the request must lead to a record. */
  inferLater(request: InferenceRequest): Promise<string> {
    return this.#inner.inferLater(request);
  }

  generate(request: StreamingRequest): Promise<OpenStream> {
    return this.#inner.generate(request);
  }
}
