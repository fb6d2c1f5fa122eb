/**
 * The part of a configuration about the model's figures: further labels, and the buckets of a
 * histogram.
 */
import type { ModelConfig } from "#shared/model/config.js";
import { LoadError } from "../../thread/load-error.js";

/** The histogram whose buckets a configuration may set, as in Triton. */
export const FIRST_RESPONSE = "nv_inference_first_response_histogram_ms";

export interface ModelFigures {
  /** Labels of every series of the model. */
  readonly labels: Readonly<Record<string, string>>;
  /** The upper bounds of the histogram's buckets, ascending; absent for its own. */
  readonly firstResponse?: readonly number[];
}

type Given = Pick<ModelConfig, "name" | "metric_tags" | "model_metrics">;

/** @throws LoadError */
export function validateFigures({ name, metric_tags, model_metrics }: Given): void {
  const key = Object.keys(metric_tags).find((one) => !/^\w{1,100}$/.test(one));
  if (key !== undefined) {
    throw new LoadError(`metric_tags of ${name}: '${key}' must be 1 to 100 letters, digits or '_', to name a label`);
  }
  for (const { metric_identifier: metric, histogram_options: options } of model_metrics?.metric_control ?? []) {
    if (metric === undefined) throw new LoadError("metric control must specify 'metric_identifier'");
    if (metric.family === "") throw new LoadError("metric identifier must specify non-empty 'family'");
    if (options === undefined) throw new LoadError("metric control must specify 'histogram_options'");
    const { buckets } = options;
    if (buckets.length === 0) throw new LoadError("histogram options must specify non-empty 'buckets'");
    if (!buckets.every((bound, i) => Number.isFinite(bound) && (i === 0 || bound > (buckets[i - 1] ?? bound)))) {
      throw new LoadError(`histogram options of '${metric.family}' must specify 'buckets' that ascend`);
    }
  }
}

/** @param config valid */
export function figuresOf({ metric_tags, model_metrics }: Omit<Given, "name">): ModelFigures {
  const labels = Object.fromEntries(Object.entries(metric_tags).map(([key, value]) => [`_${key}`, value]));
  const control = model_metrics?.metric_control.find((one) => one.metric_identifier?.family === FIRST_RESPONSE);
  const firstResponse = control?.histogram_options?.buckets;
  return { labels, ...(firstResponse && { firstResponse }) };
}
