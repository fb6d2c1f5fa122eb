/**
 * Turns a configuration in the tutorials' form into Triton's own form. Each word that Triton lacks
 * becomes the genuine word, and a warning names both. For a configuration without such words, this
 * is as strict as Triton.
 */
import type {
  DynamicBatching,
  InstanceGroup,
  ModelConfig,
  SequenceBatching,
  SequenceState,
} from "#shared/model/config.js";
import { LoadError } from "../../thread/load-error.js";
import { modelConfig } from "../pbtxt/schema.js";
import { parseTextFormat } from "../pbtxt/text-format.js";
import {
  tutorialConfig,
  type TutorialConfig,
  type TutorialDynamicBatching,
  type TutorialSequenceBatching,
  type TutorialState,
} from "../pbtxt/tutorial-schema.js";
import type { DirectoryFacts } from "./complete.js";

/** A configuration in genuine fields. */
export interface ReadConfig {
  readonly config: ModelConfig;
  /**
   * The states with one name for both of their tensors. The fields `input_name` and `output_name`
   * hold this name until the graph is known (`state-names.ts`).
   */
  readonly stateNames: ReadonlySet<string>;
  /** Batch sizes to run before the worker serves the model. */
  readonly warmUp: readonly number[];
  /** A sentence for each field that was read as another field. */
  readonly warnings: readonly string[];
}

/** A configuration in Triton's own words, unchanged. */
export function genuine(config: ModelConfig): ReadConfig {
  return { config, stateNames: new Set(), warmUp: [], warnings: [] };
}

/**
 * Reads a config.pbtxt as Triton would. If that fails, and the text has words that only tutorials
 * use, reads the text as a tutorial's configuration.
 *
 * @param file the file's name in errors
 * @throws LoadError
 */
export function readConfigText(source: Uint8Array, file: string): ReadConfig {
  try {
    return genuine(parseTextFormat(modelConfig, source, file));
  } catch (strict) {
    const written = parseTextFormat(tutorialConfig, source, file);
    if (!hasTutorialWords(written)) throw strict;
    return rewriteTutorial(written);
  }
}

function hasTutorialWords({ dynamic_batching: dynamic, sequence_batching: sequence }: TutorialConfig): boolean {
  return (
    (dynamic !== undefined && (dynamic.default_batch_size !== 0 || dynamic.timeout_action !== undefined)) ||
    (sequence !== undefined &&
      (sequence.reusable_batch !== undefined ||
        sequence.timeout_action !== undefined ||
        sequence.state.some(({ name }) => name !== "")))
  );
}

/**
 * Corrects two kinds of fields that Triton knows but whose values ask for absent things: the
 * platform of another framework beside an ONNX file, and GPUs for instances on the CPU.
 */
export function rewriteValues(read: ReadConfig, { firstVersionFiles = [] }: DirectoryFacts): ReadConfig {
  const { platform, backend, default_model_filename: named, ensemble_scheduling, instance_group } = read.config;
  const file = named || "model.onnx";
  const hasOnnx = file.endsWith(".onnx") && firstVersionFiles.includes(file);
  const other = !["", "onnxruntime_onnx", "ensemble"].includes(platform) && ensemble_scheduling === undefined;
  const replaces = other && backend === "" && hasOnnx;
  const onCpu = ({ kind, gpus }: InstanceGroup): boolean => kind === "KIND_CPU" && gpus.length > 0;
  const groups = instance_group.map((group) => (onCpu(group) ? { ...group, gpus: [] } : group));
  return {
    ...read,
    config: { ...read.config, instance_group: groups, ...(replaces && { platform: "onnxruntime_onnx" }) },
    warnings: [
      ...(replaces ? [`platform: "${platform}" is read as platform: "onnxruntime_onnx", since ${file} was found`] : []),
      ...instance_group.flatMap((group, index) =>
        onCpu(group) ? [`instance_group[${index}].gpus has no effect: its kind is KIND_CPU`] : [],
      ),
      ...read.warnings,
    ],
  };
}

function rewriteTutorial({
  dynamic_batching: dynamic,
  sequence_batching: sequence,
  ...rest
}: TutorialConfig): ReadConfig {
  if (dynamic !== undefined) checkSize("dynamic_batching.default_batch_size", dynamic.default_batch_size);
  if (sequence !== undefined) return rewriteSequence(rest, dynamic, sequence);
  if (dynamic === undefined) throw new TypeError("the tutorial's words are in neither block");
  return rewriteDynamic(rest, dynamic);
}

/** The tutorial's `dynamic_batching` alone: a model without sequences. */
function rewriteDynamic(
  rest: ModelConfig,
  { default_batch_size: size, timeout_action: action, ...batching }: TutorialDynamicBatching,
): ReadConfig {
  checkAction("dynamic_batching", action, batching.default_queue_policy);
  const isNew = size > 0 && !batching.preferred_batch_size.includes(size);
  const dynamic: DynamicBatching = {
    ...batching,
    preferred_batch_size: isNew ? [...batching.preferred_batch_size, size] : batching.preferred_batch_size,
  };
  return {
    ...genuine({ ...rest, max_batch_size: rest.max_batch_size || size, dynamic_batching: dynamic }),
    warnings: [
      ...(size > 0 ? [readAs("dynamic_batching.default_batch_size", "dynamic_batching.preferred_batch_size")] : []),
      ...timeoutWarning("dynamic_batching", action),
    ],
  };
}

/** The tutorial's `sequence_batching`, with the fields of a `dynamic_batching` beside it. */
function rewriteSequence(
  rest: ModelConfig,
  dynamic: TutorialDynamicBatching | undefined,
  { reusable_batch: reusable, timeout_action: action, state, ...batching }: TutorialSequenceBatching,
): ReadConfig {
  if (dynamic !== undefined && batching.direct !== undefined) {
    throw new LoadError(
      "dynamic_batching beside sequence_batching goes to oldest, and direct is given: leave dynamic_batching out",
    );
  }
  checkAction("dynamic_batching", dynamic?.timeout_action, dynamic?.default_queue_policy);
  checkAction("sequence_batching", action, dynamic?.default_queue_policy);
  const policies = dynamic && policiesIn(dynamic);
  const sizes = batchSizesOf(rest, dynamic, reusable, batching.oldest);
  const isOldest = reusable !== undefined || dynamic !== undefined || batching.oldest !== undefined;
  const oldest = isOldest ? oldestOf(batching.oldest, dynamic, sizes) : undefined;
  const sequence: SequenceBatching = { ...batching, ...(oldest && { oldest }), state: state.map(genuineState) };
  const implicit = rest.parameters["implicit_start"];
  const parameters = { ...rest.parameters, implicit_start: implicit ?? { string_value: "true" } };
  return {
    config: {
      ...rest,
      max_batch_size: sizes.largest,
      parameters,
      ...(policies && { dynamic_batching: policies }),
      sequence_batching: sequence,
    },
    stateNames: new Set(state.flatMap(({ name }) => (name === "" ? [] : [name]))),
    warmUp: sizes.candidates.filter((size) => size > 0 && size <= sizes.largest),
    warnings: [
      ...(dynamic === undefined ? [] : movedWarnings(dynamic)),
      ...timeoutWarning("sequence_batching", action),
      ...sizeWarnings(sizes, reusable !== undefined),
      ...(implicit === undefined
        ? [
            "a sequence begins without START, as if parameters had implicit_start: the configuration has the tutorial's form",
          ]
        : []),
    ],
  };
}

/** The values of the several fields that a tutorial has for the size of a batch. */
interface BatchSizes {
  /** The `max_batch_size`; 0 for none. */
  readonly largest: number;
  /**
   * Whether `largest` is only the largest of the candidates, because no other field gives a size.
   */
  readonly isGuessed: boolean;
  /** `reusable_batch.max_size`; 0 if absent. */
  readonly reusable: number;
  /** `reusable_batch.candidate_batch_size`. */
  readonly candidates: readonly number[];
  /** The preferred sizes, some of them perhaps above `largest`. */
  readonly preferred: readonly number[];
}

/** @throws LoadError for a negative size */
function batchSizesOf(
  { max_batch_size: explicit }: ModelConfig,
  dynamic: TutorialDynamicBatching | undefined,
  reusableBatch: TutorialSequenceBatching["reusable_batch"],
  oldest: SequenceBatching["oldest"],
): BatchSizes {
  const reusable = reusableBatch?.max_size ?? 0;
  checkSize("sequence_batching.reusable_batch.max_size", reusable);
  const candidates = reusableBatch?.candidate_batch_size ?? [];
  const usual = dynamic?.default_batch_size ?? 0;
  const told = explicit || reusable || usual;
  const given = told || Math.max(0, ...candidates);
  return {
    largest: reusable > 0 ? Math.min(given, reusable) : given,
    isGuessed: told === 0 && given > 0,
    reusable,
    candidates,
    preferred: firstGiven(
      oldest?.preferred_batch_size,
      candidates,
      dynamic?.preferred_batch_size,
      usual > 0 ? [usual] : [],
    ),
  };
}

/**
 * The fields of `oldest` and `dynamic_batching` together; if both have a field, `oldest` counts.
 */
function oldestOf(
  oldest: SequenceBatching["oldest"],
  dynamic: TutorialDynamicBatching | undefined,
  { preferred, largest }: BatchSizes,
): NonNullable<SequenceBatching["oldest"]> {
  return {
    max_candidate_sequences: oldest?.max_candidate_sequences ?? 0,
    preferred_batch_size: preferred.filter((size) => size <= largest),
    max_queue_delay_microseconds: oldest?.max_queue_delay_microseconds || (dynamic?.max_queue_delay_microseconds ?? 0),
    preserve_ordering: oldest?.preserve_ordering === true || dynamic?.preserve_ordering === true,
  };
}

function sizeWarnings(sizes: BatchSizes, isReusable: boolean): string[] {
  const { largest, isGuessed, reusable, candidates, preferred } = sizes;
  const warnings: string[] = [];
  if (reusable > 0) warnings.push(readAs("sequence_batching.reusable_batch.max_size", "max_batch_size"));
  if (candidates.length > 0) {
    warnings.push(readAs("sequence_batching.reusable_batch.candidate_batch_size", PREFERRED));
  } else if (isReusable && reusable === 0) {
    warnings.push(readAs("sequence_batching.reusable_batch", "sequence_batching.oldest"));
  }
  if (isGuessed) {
    warnings.push(`max_batch_size is ${largest}, the largest candidate_batch_size, since no other size is given`);
  }
  for (const size of preferred.filter((one) => one > largest)) {
    warnings.push(`${PREFERRED} goes without ${size}, which is more than the max_batch_size of ${largest}`);
  }
  return warnings;
}

const OLDEST = "sequence_batching.oldest";
const PREFERRED = `${OLDEST}.preferred_batch_size`;

/** The first list with a size. */
function firstGiven(...lists: readonly (readonly number[] | undefined)[]): readonly number[] {
  return lists.find((list) => list !== undefined && list.length > 0) ?? [];
}

function readAs(given: string, becomes: string): string {
  return `${given} is read as ${becomes}`;
}

/** Refuses a negative size, which later code would drop in silence. */
function checkSize(field: string, size: number): void {
  if (size < 0) throw new LoadError(`${field} must be positive, got ${size}`);
}

function timeoutWarning(block: string, action: string | undefined): string[] {
  if (action === undefined) return [];
  const meaning = readAs(`${block}.timeout_action: ${action}`, "default_queue_policy.timeout_action: REJECT");
  const why =
    action === "TIMEOUT_COMPLETE" ? "it has no meaning of its own" : "what waits for longer than it may is refused";
  return [`${meaning}: ${why}`];
}

/** Refuses a tutorial's `timeout_action` beside a policy of Triton's that says otherwise. */
function checkAction(block: string, action: string | undefined, policy: DynamicBatching["default_queue_policy"]): void {
  if (action === undefined || policy === undefined || policy.timeout_action === "REJECT") return;
  throw new LoadError(
    `${block}.timeout_action and default_queue_policy.timeout_action differ: leave the first one out`,
  );
}

/** The queue policies, which the steps of sequences obey, too; undefined if there are none. */
function policiesIn(dynamic: TutorialDynamicBatching): DynamicBatching | undefined {
  const { priority_levels, default_priority_level, default_queue_policy: usual, priority_queue_policy } = dynamic;
  const ofLevels = Object.keys(priority_queue_policy).length > 0;
  if (priority_levels === 0 && default_priority_level === 0 && usual === undefined && !ofLevels) return undefined;
  return {
    preferred_batch_size: [],
    max_queue_delay_microseconds: 0,
    preserve_ordering: false,
    priority_levels,
    default_priority_level,
    ...(usual && { default_queue_policy: usual }),
    priority_queue_policy,
  };
}

function movedWarnings(dynamic: TutorialDynamicBatching): string[] {
  const moved: [field: string, given: boolean, becomes: string][] = [
    ["preferred_batch_size", dynamic.preferred_batch_size.length > 0, PREFERRED],
    ["default_batch_size", dynamic.default_batch_size > 0, PREFERRED],
    [
      "max_queue_delay_microseconds",
      dynamic.max_queue_delay_microseconds !== 0,
      `${OLDEST}.max_queue_delay_microseconds`,
    ],
    ["preserve_ordering", dynamic.preserve_ordering, `${OLDEST}.preserve_ordering`],
  ];
  const named = moved.flatMap(([field, given, becomes]) =>
    given ? [readAs(`dynamic_batching.${field}`, becomes)] : [],
  );
  const all = [...named, ...timeoutWarning("dynamic_batching", dynamic.timeout_action)];
  return all.length > 0 || policiesIn(dynamic) !== undefined ? all : [readAs("dynamic_batching", OLDEST)];
}

function genuineState({ name, ...state }: TutorialState): SequenceState {
  if (name === "") return state;
  if (state.input_name !== "" || state.output_name !== "") {
    throw new LoadError(`state '${name}' has a name beside input_name and output_name: leave it out`);
  }
  if (state.initial_state.length > 0) {
    throw new LoadError(`state '${name}' has an initial_state: write input_name and output_name in place of its name`);
  }
  return { ...state, input_name: name, output_name: name };
}
