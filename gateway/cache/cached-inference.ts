/**
 * Answers requests to models with `response_cache` from the cache, for every door. The code of the
 * cache loads with the first such request, and other models do not notice it.
 */
import type { Inference, InferenceOutcome, InferenceRequest, StreamingRequest } from "../admission/inference.js";
import type { OpenStream } from "../stream/open-stream.js";
import type { AnswerCache, CacheSettings } from "./answer-cache.js";

export class CachedInference implements Inference {
  readonly #inner: Inference;
  readonly #settings: CacheSettings;
  #cache: Promise<AnswerCache> | undefined;

  constructor(inner: Inference, settings: CacheSettings) {
    this.#inner = inner;
    this.#settings = settings;
  }

  infer(request: InferenceRequest): Promise<InferenceOutcome> {
    const { model, idempotencyKey } = request;
    // A key has a record of its own, by which a second use of the key finds the first.
    const mayCache = model.cachesAnswers === true && model.sequence === undefined && idempotencyKey === undefined;
    return mayCache ? this.#inferCached(request) : this.#inner.infer(request);
  }

  async #inferCached(request: InferenceRequest): Promise<InferenceOutcome> {
    this.#cache ??= import("./answer-cache.js").then(({ AnswerCache }) => new AnswerCache(this.#settings));
    return (await this.#cache).infer(request, this.#inner);
  }

  /** Runs always, because the client's id of the request must lead to a record. */
  inferLater(request: InferenceRequest): Promise<string> {
    return this.#inner.inferLater(request);
  }

  generate(request: StreamingRequest): Promise<OpenStream> {
    return this.#inner.generate(request);
  }
}
