import { expect, it } from "vitest";
import type { ModelConfig } from "#shared/model/config.js";
import { configJson } from "./config-json.js";
import { modelConfig } from "./schema.js";
import { parseTextFormat } from "./text-format.js";

const parse = (text: string): ModelConfig => parseTextFormat(modelConfig, Buffer.from(text), "config.pbtxt");

it("configJson prints defaults, enum names and the proto's order, and leaves out what was not given", () => {
  const { max_batch_size: size, ...rest } = parse(
    "name: 'm' input { name: 'A' data_type: TYPE_FP32 dims: [-1, 3] } metric_tags { key: '__proto__' value: 'x' }",
  );
  expect(JSON.stringify(configJson({ ...rest, max_batch_size: size }))).toBe(
    '{"name":"m","platform":"","backend":"","runtime":"","max_batch_size":0,' +
      '"input":[{"name":"A","data_type":"TYPE_FP32","format":"FORMAT_NONE","dims":[-1,3],"is_shape_tensor":false,' +
      '"allow_ragged_batch":false,"optional":false,"is_non_linear_format_io":false}],' +
      '"output":[],"batch_input":[],"batch_output":[],"instance_group":[],"default_model_filename":"",' +
      '"cc_model_filenames":{},"metric_tags":{"__proto__":"x"},"parameters":{},"model_warmup":[]}',
  );
});

it.each([
  ["1000000", 1_000_000],
  ["9007199254740993", 9_007_199_254_740_992],
  ["18446744073709551615", 18_446_744_073_709_549_568],
])("configJson prints uint64 %s as a number that is still a uint64", (text, number) => {
  const config = configJson(parse(`sequence_batching { max_sequence_idle_microseconds: ${text} }`));
  expect(config["sequence_batching"]).toHaveProperty("max_sequence_idle_microseconds", number);
  expect(BigInt(JSON.stringify(number)) < 2n ** 64n).toBe(true);
});

it("configJson keeps map keys strings and writes what JSON has no number for as proto3 does", () => {
  const config = parse(
    "dynamic_batching { priority_queue_policy { key: 2 value { timeout_action: DELAY } } }" +
      "model_metrics { metric_control { histogram_options { buckets: [1.5, inf, -inf, nan] } } }",
  );
  expect(configJson(config)).toMatchObject({
    dynamic_batching: { priority_queue_policy: { "2": { timeout_action: "DELAY", max_queue_size: 0 } } },
    model_metrics: { metric_control: [{ histogram_options: { buckets: [1.5, "Infinity", "-Infinity", "NaN"] } }] },
  });
});
