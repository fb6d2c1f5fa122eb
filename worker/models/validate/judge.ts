/** Finds the fields of a configuration that Baton does not support, by the table of verdicts. */
import type { ModelConfig } from "#shared/model/config.js";
import { LoadError } from "../../thread/load-error.js";
import type { Field, Message } from "../pbtxt/message.js";
import { modelConfig } from "../pbtxt/schema.js";
import { FIRST_RESPONSE } from "./figures.js";
import { isEnsemble } from "./ensemble.js";
import {
  ensembleParameterVerdict,
  ensembleVerdicts,
  generatorVerdicts,
  parameterVerdict,
  Verdict,
  verdicts,
  type Verdicts,
} from "./verdicts.js";

/**
 * @param config as written, because completion fills in further values
 * @returns a sentence for each field that Baton does not obey but that changes no answer
 * @throws LoadError that names every unsupported field that could change the clients' answers
 */
export function judge(config: ModelConfig): string[] {
  return warningsOf([
    ...judgeMessage(modelConfig, { ...config }, isEnsemble(config) ? ensembleVerdicts : verdicts, ""),
    ...judgeLevels(config),
    ...judgeMetrics(config),
    ...judgeParameters(config),
  ]);
}

/** Does the same for the configuration of a generator. */
export function judgeGenerator(config: ModelConfig): string[] {
  return warningsOf([
    ...judgeMessage(modelConfig, { ...config }, generatorVerdicts, ""),
    ...judgeGroups(config),
    ...judgeMetrics(config),
  ]);
}

/** @throws LoadError */
function warningsOf(found: readonly Finding[]): string[] {
  const refusals = found.filter(({ fatal }) => fatal).map(({ text }) => text);
  if (refusals.length > 0) throw new LoadError(refusals.join("; "));
  return found.map(({ text }) => text);
}

/** A field that Baton does not obey. If `fatal`, Baton refuses the model. */
interface Finding {
  readonly fatal: boolean;
  readonly text: string;
}

function judgeMessage(
  message: Message,
  value: Readonly<Record<string, unknown>>,
  table: Verdicts,
  path: string,
): Finding[] {
  return [...message.fields].flatMap(([name, field]) => {
    const given = value[name];
    const verdict = table[name];
    if (verdict === undefined || !isGiven(field, given)) return [];
    if (verdict instanceof Verdict) return judgeField(verdict, path + name, given);
    return nested(field, given).flatMap(({ type, item, index }) =>
      judgeMessage(type, item, verdict, `${path}${name}${index}.`),
    );
  });
}

function judgeField({ decision }: Verdict, path: string, value: unknown): Finding[] {
  if (decision.kind === "obeyed" || decision.kind === "needless" || decision.allowed?.(value) === true) return [];
  const fatal = decision.kind === "refused";
  return [{ fatal, text: `${path} ${fatal ? "is not supported" : "has no effect"}: ${decision.why}` }];
}

/**
 * Each worker runs one instance of a generator. The verdicts on a group's fields cannot express
 * that there is more than one group.
 */
function judgeGroups({ instance_group: groups }: ModelConfig): Finding[] {
  if (groups.length < 2) return [];
  const why = "each worker runs one instance of a generator: start more workers instead";
  return [{ fatal: false, text: `instance_group has no effect beyond its first entry: ${why}` }];
}

/** Without priority levels, fields about them have no effect, as in Triton. */
function judgeLevels({ dynamic_batching: batching }: ModelConfig): Finding[] {
  if (batching === undefined || Number(batching.priority_levels) > 0) return [];
  const fields = [
    ...(Number(batching.default_priority_level) > 0 ? ["default_priority_level"] : []),
    ...(Object.keys(batching.priority_queue_policy).length > 0 ? ["priority_queue_policy"] : []),
  ];
  const why = "it counts only where there are priority_levels";
  return fields.map((field) => ({ fatal: false, text: `dynamic_batching.${field} has no effect: ${why}` }));
}

/** The buckets of other histograms are not the model's to set. */
function judgeMetrics({ model_metrics: metrics }: ModelConfig): Finding[] {
  return (metrics?.metric_control ?? []).flatMap(({ metric_identifier: metric }, index) => {
    if (metric === undefined || metric.family === FIRST_RESPONSE) return [];
    const why = `only the buckets of ${FIRST_RESPONSE} can be set, as in Triton`;
    return [{ fatal: false, text: `model_metrics.metric_control[${index}] has no effect: ${why}` }];
  });
}

function judgeParameters(config: ModelConfig): Finding[] {
  const verdictOf = isEnsemble(config) ? ensembleParameterVerdict : parameterVerdict;
  return Object.entries(config.parameters).flatMap(([key, { string_value: value }]) => {
    return judgeField(verdictOf(key), `parameters['${key}']`, value);
  });
}

/** A default is a value that Triton fills in, so it asks for nothing. */
function isGiven({ label, type }: Field, value: unknown): boolean {
  if (value === undefined) return false;
  if (label === "repeated") return (value as readonly unknown[]).length > 0;
  if (label === "map") return Object.keys(value as object).length > 0;
  if (typeof type === "string") return Boolean(value);
  return type.kind === "message" || value !== type.values[0];
}

/** A message within a field. */
interface Nested {
  readonly type: Message;
  readonly item: Readonly<Record<string, unknown>>;
  /**
   * The message's place in the field: `[0]` in a list, `['a']` in a map, and empty for a single
   * message.
   */
  readonly index: string;
}

/** The messages that a field holds. */
function nested({ label, type }: Field, value: unknown): Nested[] {
  if (typeof type === "string" || type.kind === "enum") return [];
  const items: [index: string, item: unknown][] =
    label === "singular"
      ? [["", value]]
      : Object.entries(value as object).map(([key, item]) => [label === "map" ? `['${key}']` : `[${key}]`, item]);
  return items.map(([index, item]) => ({ type, item: item as Readonly<Record<string, unknown>>, index }));
}
