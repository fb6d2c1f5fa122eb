import { describe, expect, it } from "vitest";
import type { ModelConfig } from "#shared/model/config.js";
import { completeDefaults } from "../models/validate/complete.js";
import { modelConfig } from "../models/pbtxt/schema.js";
import { parseTextFormat } from "../models/pbtxt/text-format.js";
import { servingOf } from "./serving.js";

const none = { inputs: [], outputs: [] };

function configOf(text: string): ModelConfig {
  const config = parseTextFormat(modelConfig, Buffer.from(text), "config.pbtxt");
  return completeDefaults(config, { directory: "m", firstVersionFiles: ["model.onnx"], gpus: [] });
}

describe("batch limits", () => {
  it.each([
    ["", 1, 0, []],
    ["max_batch_size: 8", 1, 0, []],
    ["max_batch_size: 8 dynamic_batching { preferred_batch_size: [ 8, 4 ] }", 8, 0, [4, 8]],
    ["max_batch_size: 8 sequence_batching { }", 8, 0, []],
    ["max_batch_size: 4 sequence_batching { oldest { max_queue_delay_microseconds: 500 } }", 4, 0.5, [4]],
    ["max_batch_size: 4 sequence_batching { direct { max_queue_delay_microseconds: 500 } }", 4, 0, []],
    [
      "max_batch_size: 4 sequence_batching { direct { max_queue_delay_microseconds: 500 minimum_slot_utilization: 0.5 } }",
      4,
      0.5,
      [],
      2,
    ],
    [
      "max_batch_size: 10 sequence_batching { direct { max_queue_delay_microseconds: 500 minimum_slot_utilization: 0.3 } }",
      10,
      0.5,
      [],
      3,
    ],
  ])("of %j", (text, maxBatchSize, maxDelayMs, preferred, enough?: number) => {
    expect(servingOf(configOf(text), none, { initialStates: new Map(), constants: [] }).limits).toEqual({
      maxBatchSize,
      maxDelayMs,
      preferred,
      enough,
    });
  });
});

describe("a control", () => {
  it.each([
    ["int32_false_true: [ 3, -4 ]", "INT32", Int32Array.of(3), Int32Array.of(-4)],
    ["fp32_false_true: [ 0.5, 1.5 ]", "FP32", Float32Array.of(0.5), Float32Array.of(1.5)],
    ["bool_false_true: [ false, true ]", "BOOL", Uint8Array.of(0), Uint8Array.of(1)],
    ["bool_false_true: [ true, false ]", "BOOL", Uint8Array.of(1), Uint8Array.of(0)],
  ])("has the values of %s", (values, datatype, no, yes) => {
    const control = `control_input { name: 'S' control { kind: CONTROL_SEQUENCE_START ${values} } }`;
    const config = configOf(`sequence_batching { ${control} }`);
    expect(servingOf(config, none, { initialStates: new Map(), constants: [] }).controls).toEqual([
      { kind: "start", tensor: "S", datatype, values: { no: Buffer.from(no.buffer), yes: Buffer.from(yes.buffer) } },
    ]);
  });
});

describe("an initial state", () => {
  const state = (initial: string): string =>
    `sequence_batching { state { input_name: 'S' output_name: 'T' data_type: TYPE_INT32 dims: [ -1, 2 ] ${initial} } }`;

  it.each([
    ["is of one row where nothing is said", state(""), [1, 2], 8],
    [
      "has the dims that are said",
      state("initial_state { name: 'i' data_type: TYPE_INT32 dims: [ 3, 2 ] zero_data: true }"),
      [3, 2],
      24,
    ],
  ])("%s", (_, text, shape, bytes) => {
    const [given] = servingOf(configOf(text), none, { initialStates: new Map(), constants: [] }).states;
    expect([given?.initialShape, given?.initial.length]).toEqual([shape, bytes]);
  });
});
