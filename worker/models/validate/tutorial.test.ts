import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tutorialBatching } from "../../../test/fixtures/tutorial.js";
import { completeDefaults, type DirectoryFacts } from "./complete.js";
import { judge } from "./judge.js";
import { readConfigText, rewriteValues, type ReadConfig } from "./tutorial.js";
import { validateConfig } from "./validate.js";

const facts: DirectoryFacts = { directory: "m", firstVersionFiles: ["model.onnx"], gpus: [] };
const read = (text: string, more: Partial<DirectoryFacts> = {}): ReadConfig =>
  rewriteValues(readConfigText(Buffer.from(text), "config.pbtxt"), { ...facts, ...more });
const refusal = (text: string): string => {
  try {
    const { config } = read(text);
    judge(config);
    validateConfig(completeDefaults(config, facts), []);
    return "nothing is wrong with it";
  } catch (error) {
    return error instanceof Error && error.name === "LoadError" ? error.message : String(error);
  }
};

const tutorial = readFileSync(join(import.meta.dirname, "../../../infra/tutorial/config.pbtxt"), "utf8");

describe("the tutorial's configuration", () => {
  it("becomes Triton's", () => {
    const { config, stateNames, warmUp } = read(tutorial);
    expect(config.platform).toBe("onnxruntime_onnx");
    expect(config.instance_group).toMatchObject([{ count: 1, kind: "KIND_CPU", gpus: [] }]);
    expect(config.max_batch_size).toBe(8);
    expect(config).not.toHaveProperty("dynamic_batching");
    expect(config.parameters).toEqual({ implicit_start: { string_value: "true" } });
    expect(config.sequence_batching).toEqual(tutorialBatching("lstm_state", "lstm_state"));
    expect([...stateNames]).toEqual(["lstm_state"]);
    expect(warmUp).toEqual([4, 8]);
    validateConfig(completeDefaults(config, { ...facts, directory: "my_lstm_model" }), []);
  });

  it("is warned of once for each field, by the name that it should have", () => {
    expect(read(tutorial).warnings).toEqual([
      'platform: "tensorflow_savedmodel" is read as platform: "onnxruntime_onnx", since model.onnx was found',
      "instance_group[0].gpus has no effect: its kind is KIND_CPU",
      "dynamic_batching.default_batch_size is read as sequence_batching.oldest.preferred_batch_size",
      "dynamic_batching.max_queue_delay_microseconds is read as sequence_batching.oldest.max_queue_delay_microseconds",
      "dynamic_batching.preserve_ordering is read as sequence_batching.oldest.preserve_ordering",
      "dynamic_batching.timeout_action: TIMEOUT_REJECT is read as default_queue_policy.timeout_action: REJECT: " +
        "what waits for longer than it may is refused",
      "sequence_batching.timeout_action: TIMEOUT_REJECT is read as default_queue_policy.timeout_action: REJECT: " +
        "what waits for longer than it may is refused",
      "sequence_batching.reusable_batch.max_size is read as max_batch_size",
      "sequence_batching.reusable_batch.candidate_batch_size is read as sequence_batching.oldest.preferred_batch_size",
      "a sequence begins without START, as if parameters had implicit_start: " +
        "the configuration has the tutorial's form",
    ]);
  });

  it.each<[text: string, oldest: object | undefined, size: number]>([
    ["sequence_batching { timeout_action: TIMEOUT_COMPLETE }", undefined, 0],
    ["sequence_batching { reusable_batch { } }", {}, 0],
    ["sequence_batching { reusable_batch { max_size: 8 } }", {}, 8],
    ["max_batch_size: 4 sequence_batching { reusable_batch { max_size: 8 } }", {}, 4],
    ["max_batch_size: 16 sequence_batching { reusable_batch { max_size: 8 } }", {}, 8],
    [
      "max_batch_size: 4 sequence_batching { reusable_batch { candidate_batch_size: [ 2, 8 ] } }",
      { preferred_batch_size: [2] },
      4,
    ],
    ["sequence_batching { reusable_batch { candidate_batch_size: [ 4, 8 ] } }", { preferred_batch_size: [4, 8] }, 8],
    [
      "dynamic_batching { default_batch_size: 2 } sequence_batching { reusable_batch { candidate_batch_size: [ 2, 8 ] } }",
      { preferred_batch_size: [2] },
      2,
    ],
    [
      "dynamic_batching { default_batch_size: 2 } sequence_batching { oldest { max_candidate_sequences: 9 } }",
      { preferred_batch_size: [2], max_candidate_sequences: 9 },
      2,
    ],
    [
      "max_batch_size: 8 sequence_batching { reusable_batch { } } dynamic_batching { preferred_batch_size: 3 }",
      { preferred_batch_size: [3] },
      8,
    ],
    [
      "dynamic_batching { timeout_action: TIMEOUT_REJECT max_queue_delay_microseconds: 5 } " +
        "sequence_batching { oldest { max_queue_delay_microseconds: 7 } }",
      { max_queue_delay_microseconds: 7 },
      0,
    ],
  ])("%j has oldest %j and max_batch_size %d", (text, oldest, size) => {
    const { config, warnings } = read(text);
    const plain = { max_candidate_sequences: 0, preferred_batch_size: [], max_queue_delay_microseconds: 0 };
    const expected = oldest && { ...plain, preserve_ordering: false, ...oldest };
    expect([config.sequence_batching?.oldest, config.max_batch_size]).toEqual([expected, size]);
    expect(config.parameters["implicit_start"]?.string_value).toBe("true");
    expect(warnings.length).toBeGreaterThan(1);
  });

  it("keeps the queue policies of an ensemble", () => {
    const text = (more: string) => `platform: "ensemble" max_batch_size: 4 ensemble_scheduling { }
      dynamic_batching { timeout_action: TIMEOUT_REJECT priority_levels: 2 default_priority_level: 1 ${more} }`;
    const { config } = read(text("preserve_ordering: true default_queue_policy { max_queue_size: 9 }"));
    expect(judge(config)).toEqual([]);
    expect(completeDefaults(config, facts).dynamic_batching).toMatchObject({
      preferred_batch_size: [],
      priority_levels: 2,
      preserve_ordering: true,
      default_queue_policy: { max_queue_size: 9 },
    });
    const delayed = read(text("max_queue_delay_microseconds: 5")).config;
    expect(() => judge(delayed)).toThrow(/dynamic_batching.max_queue_delay_microseconds is not supported: an ensemble/);
  });

  it("keeps the queue policies for the steps of sequences", () => {
    const policy = "{ timeout_action: DELAY default_timeout_microseconds: 5 }";
    const { config, warnings } = read(
      "dynamic_batching { priority_levels: 2 default_priority_level: 1 max_queue_delay_microseconds: 7 " +
        `preserve_ordering: true default_queue_policy { max_queue_size: 9 } priority_queue_policy { key: 2 value ${policy} } } ` +
        "sequence_batching { reusable_batch { max_size: 4 } }",
    );
    const complete = completeDefaults(config, facts);
    validateConfig(complete, []);
    expect(judge(config).filter((warning) => warning.startsWith("dynamic_batching"))).toEqual([]);
    expect(complete.dynamic_batching).toMatchObject({
      preferred_batch_size: [],
      max_queue_delay_microseconds: 0,
      preserve_ordering: false,
      priority_levels: 2,
      default_priority_level: 1,
      default_queue_policy: { max_queue_size: 9 },
      priority_queue_policy: { "2": { timeout_action: "DELAY", default_timeout_microseconds: 5 } },
    });
    expect(complete.sequence_batching).toMatchObject({
      max_sequence_idle_microseconds: 1_000_000,
      oldest: { preferred_batch_size: [4], max_queue_delay_microseconds: 7, preserve_ordering: true },
    });
    expect(warnings.join()).not.toContain("dynamic_batching is read as");
  });

  it("may say itself that sequences begin with START", () => {
    const explicit = "parameters { key: 'implicit_start' value { string_value: 'false' } }";
    const { config, warnings } = read(`${explicit} sequence_batching { timeout_action: TIMEOUT_REJECT }`);
    expect(config.parameters["implicit_start"]?.string_value).toBe("false");
    expect(warnings.join()).not.toContain("implicit_start");
  });

  it("says that TIMEOUT_COMPLETE means nothing of its own, and which sizes are too large", () => {
    const text =
      "max_batch_size: 4 sequence_batching { timeout_action: TIMEOUT_COMPLETE reusable_batch { candidate_batch_size: 8 } }";
    expect(read(text).warnings.slice(0, 3)).toEqual([
      "sequence_batching.timeout_action: TIMEOUT_COMPLETE is read as default_queue_policy.timeout_action: REJECT: " +
        "it has no meaning of its own",
      "sequence_batching.reusable_batch.candidate_batch_size is read as sequence_batching.oldest.preferred_batch_size",
      "sequence_batching.oldest.preferred_batch_size goes without 8, which is more than the max_batch_size of 4",
    ]);
    expect(read(text).warmUp).toEqual([]);
  });

  it("takes the largest candidate for max_batch_size where no size is given, and says so", () => {
    const { config, warmUp, warnings } = read(
      "sequence_batching { reusable_batch { candidate_batch_size: [ 8, 4 ] } }",
    );
    expect([config.max_batch_size, warmUp]).toEqual([8, [8, 4]]);
    expect(warnings.slice(0, 2)).toEqual([
      "sequence_batching.reusable_batch.candidate_batch_size is read as sequence_batching.oldest.preferred_batch_size",
      "max_batch_size is 8, the largest candidate_batch_size, since no other size is given",
    ]);
    expect(refusal("sequence_batching { reusable_batch { candidate_batch_size: [ -4 ] } }")).toBe(
      "sequence batching preferred batch size must be positive for m",
    );
  });

  it("may have dynamic_batching alone, and then no sequences", () => {
    const { config, warnings } = read("dynamic_batching { default_batch_size: 4 timeout_action: TIMEOUT_REJECT }");
    expect(config.dynamic_batching?.preferred_batch_size).toEqual([4]);
    expect([config.max_batch_size, config.parameters]).toEqual([4, {}]);
    expect(warnings).toHaveLength(2);
  });

  it.each([
    [
      "sequence_batching { reusable_batch { } direct { } }",
      /^config\.pbtxt:1:40: Field "direct" is specified along with field "reusable_batch", another member of oneof "strategy_choice"\.$/,
    ],
    ["sequence_batching { direct { } reusable_batch { } }", /^config\.pbtxt:1:32: Field "reusable_batch" is specified/],
    ["sequence_batching { oldest { } reusable_batch { } }", /^config\.pbtxt:1:32: Field "reusable_batch" is specified/],
    ["sequence_batching { reusable_batch { size: 8 } }", /ReusableBatch" has no field named "size"\.$/],
    [
      "sequence_batching { reusable_bach { } }",
      /^config\.pbtxt:1:21: Message type "inference.ModelSequenceBatching" has no field named "reusable_bach"\.$/,
    ],
    [
      "dynamic_batching { default_batch_sise: 4 }",
      /^config\.pbtxt:1:20: Message type "inference.ModelDynamicBatching" has no field named "default_batch_sise"\.$/,
    ],
    [
      "dynamic_batching { default_batch_size: 4 } sequence_batching { state { nam: 's' } }",
      /State" has no field named "nam"\.$/,
    ],
    [
      "dynamic_batching { } sequence_batching { }",
      /^config\.pbtxt:1:22: Field "sequence_batching" is specified along with field "dynamic_batching"/,
    ],
    ["sequence_batching { timeout_action: TIMEOUT_DELAY }", /Unknown enumeration value of "TIMEOUT_DELAY"/],
    ["sequence_batching { reusable_batch { max_size: -1 } }", /^sequence_batching\.reusable_batch\.max_size must be/],
    ["dynamic_batching { default_batch_size: -1 }", /^dynamic_batching\.default_batch_size must be positive, got -1$/],
    [
      "max_batch_size: 8 sequence_batching { reusable_batch { candidate_batch_size: [ 0, 4 ] } }",
      /^sequence batching preferred batch size must be positive for m$/,
    ],
    [
      "dynamic_batching { default_batch_size: 4 } sequence_batching { direct { } }",
      /^dynamic_batching beside sequence_batching goes to oldest, and direct is given: leave dynamic_batching out$/,
    ],
    [
      "dynamic_batching { default_queue_policy { timeout_action: DELAY } } sequence_batching { timeout_action: TIMEOUT_REJECT }",
      /^sequence_batching\.timeout_action and default_queue_policy\.timeout_action differ: leave the first one out$/,
    ],
    [
      "dynamic_batching { default_batch_size: 4 priority_levels: 2 } sequence_batching { }",
      /^default priority level must be in range \[1, 2\] for m$/,
    ],
    [
      "dynamic_batching { timeout_action: TIMEOUT_REJECT default_queue_policy { timeout_action: DELAY } }",
      /^dynamic_batching\.timeout_action and default_queue_policy\.timeout_action differ: leave the first one out$/,
    ],
    ["sequence_batching { state { name: 's' input_name: 'a' } }", /^state 's' has a name beside input_name/],
    [
      "sequence_batching { state { name: 's' initial_state { } } }",
      /^state 's' has an initial_state: write input_name/,
    ],
    [
      "sequence_batching { timeout_action: TIMEOUT_REJECT iterative_sequence: true }",
      /^iterative_sequence of m needs the BOOL output/,
    ],
  ])("is refused as %j", (text, message) => {
    expect(refusal(text)).toMatch(message);
  });
});

describe("a genuine configuration", () => {
  it("stays as it is", () => {
    const { config, warnings, stateNames, warmUp } = read("sequence_batching { oldest { } }");
    expect([config.parameters, warnings, [...stateNames], warmUp]).toEqual([{}, [], [], []]);
  });

  it.each<[text: string, more: Partial<DirectoryFacts>, platform: string]>([
    ["platform: 'pytorch_libtorch'", {}, "onnxruntime_onnx"],
    ["platform: 'pytorch_libtorch'", { firstVersionFiles: ["model.pt"] }, "pytorch_libtorch"],
    ["platform: 'pytorch_libtorch'", { firstVersionFiles: undefined }, "pytorch_libtorch"],
    [
      "platform: 'x' default_model_filename: 'a.onnx'",
      { firstVersionFiles: ["a.onnx", "model.onnx"] },
      "onnxruntime_onnx",
    ],
    ["platform: 'x' default_model_filename: 'a.pb'", { firstVersionFiles: ["a.pb", "model.onnx"] }, "x"],
    ["platform: 'x' backend: 'onnxruntime'", {}, "x"],
    ["platform: 'ensemble'", {}, "ensemble"],
    ["platform: 'x' ensemble_scheduling { }", {}, "x"],
  ])("with %j and %j has the platform %s", (text, more, platform) => {
    const { config, warnings } = read(text, more);
    expect([config.platform, warnings.length]).toEqual([platform, platform === "onnxruntime_onnx" ? 1 : 0]);
  });

  it("keeps the GPUs of groups that are not on the CPU", () => {
    const { config } = read("instance_group { kind: KIND_GPU gpus: 1 } instance_group { gpus: 0 }");
    expect(config.instance_group.map(({ gpus }) => gpus)).toEqual([[1], [0]]);
  });
});
