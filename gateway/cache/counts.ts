/** The figures of the cache in this process, in Triton's names and for Triton's statistics. */
import type { ServedModel } from "#shared/contract/announcement.js";
import { cells } from "#shared/metrics/cells.js";
import { endReport } from "../outcomes/end-report.js";

const US_PER_MS = 1_000;

export class ModelCacheCounts {
  readonly #model: { readonly model: string; readonly version: string };
  readonly #hits;
  readonly #hitUs;
  readonly #misses;
  readonly #missUs;
  /** Made at the first hit: on the page of a gateway without hits, only workers have successes. */
  #successes: { readonly count: number; readonly us: number } | undefined;

  constructor({ name: model, version }: ServedModel) {
    this.#model = { model, version };
    const labels = cells.modelLabels(model, version);
    this.#hits = cells.counter("nv_cache_num_hits_per_model", labels);
    this.#hitUs = cells.counter("nv_cache_hit_duration_per_model", labels);
    this.#misses = cells.counter("nv_cache_num_misses_per_model", labels);
    this.#missUs = cells.counter("nv_cache_miss_duration_per_model", labels);
  }

  /** @param ms from the request to the answer */
  hit(ms: number): void {
    const us = Math.round(ms * US_PER_MS);
    const labels = cells.modelLabels(this.#model.model, this.#model.version);
    this.#successes ??= {
      count: cells.counter("nv_inference_request_success", labels),
      us: cells.counter("nv_inference_request_duration_us", labels),
    };
    cells.add(this.#hits);
    cells.add(this.#hitUs, us);
    cells.add(this.#successes.count);
    cells.add(this.#successes.us, us);
    endReport.hit(this.#model, us);
  }

  /** @param ms of the look-up */
  missed(ms: number): void {
    cells.add(this.#misses);
    this.#spent(1, ms);
  }

  /** @param ms that it took to keep an answer */
  kept(ms: number): void {
    this.#spent(0, ms);
  }

  #spent(misses: 0 | 1, ms: number): void {
    const us = Math.round(ms * US_PER_MS);
    cells.add(this.#missUs, us);
    endReport.missed(this.#model, misses, us);
  }
}

/** By the models of announcements: a worker that comes back announces its models anew. */
const ofModels = new WeakMap<ServedModel, ModelCacheCounts>();

export function cacheCountsOf(model: ServedModel): ModelCacheCounts {
  let counts = ofModels.get(model);
  if (counts === undefined) ofModels.set(model, (counts = new ModelCacheCounts(model)));
  return counts;
}
