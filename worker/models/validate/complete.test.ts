import { describe, expect, it } from "vitest";
import type { ModelConfig } from "#shared/model/config.js";
import { completeDefaults, groupsOfDigest, type DirectoryFacts } from "./complete.js";
import { modelConfig } from "../pbtxt/schema.js";
import { parseTextFormat } from "../pbtxt/text-format.js";

const parse = (text: string): ModelConfig => parseTextFormat(modelConfig, Buffer.from(text), "config.pbtxt");
const facts: DirectoryFacts = { directory: "m", firstVersionFiles: ["model.onnx"], gpus: [] };
const stageA = (text: string, given: Partial<DirectoryFacts> = {}): ModelConfig =>
  completeDefaults(parse(text), { ...facts, ...given });

describe("completeDefaults", () => {
  const identity = ({ name, backend, platform, default_model_filename }: ModelConfig) =>
    [name, backend, platform, default_model_filename].join(" ");
  it.each<[string, Partial<DirectoryFacts>, string]>([
    ["", {}, "m onnxruntime onnxruntime_onnx model.onnx"],
    ["name: 'n'", {}, "n onnxruntime onnxruntime_onnx model.onnx"],
    ["backend: 'onnxruntime'", { firstVersionFiles: undefined }, "m onnxruntime onnxruntime_onnx model.onnx"],
    ["platform: 'onnxruntime_onnx'", { firstVersionFiles: [] }, "m onnxruntime onnxruntime_onnx model.onnx"],
    ["default_model_filename: 'model.onnx'", { firstVersionFiles: [] }, "m onnxruntime onnxruntime_onnx model.onnx"],
    ["backend: 'onnxruntime' default_model_filename: 'x.onnx'", {}, "m onnxruntime onnxruntime_onnx x.onnx"],
    ["default_model_filename: 'x.onnx'", {}, "m   x.onnx"],
    ["", { firstVersionFiles: ["model.py"] }, "m   "],
    ["", { firstVersionFiles: undefined }, "m   "],
    ["backend: 'python'", {}, "m python  "],
  ])("knows the backend of %j in %j", (text, given, expected) => {
    expect(identity(stageA(text, given))).toBe(expected);
  });

  it.each<[text: string, read: (config: ModelConfig) => unknown, value: unknown]>([
    ["", (config) => config.version_policy, { latest: { num_versions: 1 } }],
    ["version_policy { all { } }", (config) => config.version_policy, { all: {} }],
    ["max_batch_size: 8 dynamic_batching { }", (config) => config.dynamic_batching?.preferred_batch_size, [8]],
    ["dynamic_batching { }", (config) => config.dynamic_batching?.preferred_batch_size, []],
    [
      "max_batch_size: 8 dynamic_batching { preferred_batch_size: 4 }",
      (config) => config.dynamic_batching?.preferred_batch_size,
      [4],
    ],
    [
      "max_batch_size: 8 sequence_batching { oldest { } }",
      (config) => config.sequence_batching?.oldest?.preferred_batch_size,
      [8],
    ],
    ["sequence_batching { }", (config) => config.sequence_batching?.max_sequence_idle_microseconds, 1_000_000],
    ["sequence_batching { }", (config) => config.sequence_batching?.oldest, undefined],
    [
      "sequence_batching { max_sequence_idle_microseconds: 5 }",
      (config) => config.sequence_batching?.max_sequence_idle_microseconds,
      5,
    ],
    ["", (config) => config.optimization?.input_pinned_memory, { enable: true }],
    ["", (config) => config.optimization?.output_pinned_memory, { enable: true }],
    [
      "optimization { input_pinned_memory { enable: false } graph { level: 1 } }",
      ({ optimization }) => [optimization?.input_pinned_memory, optimization?.graph],
      [{ enable: false }, { level: 1 }],
    ],
  ])("%j", (text, read, value) => {
    expect(read(stageA(text))).toEqual(value);
  });

  it.each<[text: string, gpus: number[], groups: string[]]>([
    ["", [], ["m KIND_CPU 1 []"]],
    ["", [0, 1], ["m KIND_GPU 1 [0,1]"]],
    ["instance_group { }", [], ["m_0 KIND_CPU 1 []"]],
    [
      "instance_group { count: 3 } instance_group { name: 'x' kind: KIND_CPU }",
      [0],
      ["m_0 KIND_GPU 3 [0]", "x KIND_CPU 1 []"],
    ],
    ["instance_group { kind: KIND_MODEL }", [], ["m_0 KIND_MODEL 1 []"]],
    ["instance_group { gpus: 7 }", [0], ["m_0 KIND_CPU 1 [7]"]],
    ["instance_group { kind: KIND_GPU gpus: 1 }", [0, 1], ["m_0 KIND_GPU 1 [1]"]],
    ["backend: 'python' instance_group { kind: KIND_CPU }", [], ["m_0 KIND_CPU 1 []"]],
  ])("gives %j on GPUs %j the instance groups %j", (text, gpus, groups) => {
    const given = stageA(text, { gpus }).instance_group;
    expect(given.map(({ name, kind, count, gpus }) => `${name} ${kind} ${count} [${gpus.join()}]`)).toEqual(groups);
  });

  it.each<[text: string, groups: string[]]>([
    ["", ["m KIND_CPU 2"]],
    ["instance_group { } instance_group { count: 1 }", ["m_0 KIND_CPU 2", "m_1 KIND_CPU 1"]],
    ["instance_group { kind: KIND_GPU }", ["m_0 KIND_GPU 1"]],
    ["backend: 'python'", ["m KIND_CPU 1"]],
  ])("digests of %j have the groups %j, on any GPUs", (text, groups) => {
    const given = groupsOfDigest(parse(text), { ...facts, gpus: [0, 1] });
    expect(given.map(({ name, kind, count }) => `${name} ${kind} ${count}`)).toEqual(groups);
  });

  it("leaves an ensemble without instance groups and optimization", () => {
    const config = stageA("platform: 'ensemble' ensemble_scheduling { }");
    expect([config.instance_group, config.optimization]).toEqual([[], undefined]);
  });

  it("changes nothing the second time", () => {
    const once = stageA("max_batch_size: 8 sequence_batching { oldest { } } instance_group { }");
    expect(completeDefaults(once, facts)).toEqual(once);
  });
});
