import { describe, expect, it } from "vitest";
import { parseConfigJson } from "./parse-config-json.js";

describe("a configuration as JSON", () => {
  it("has names of both kinds, numbers as texts, enums in any case, and maps", () => {
    const config = parseConfigJson(
      JSON.stringify({
        name: 'a "name"\\ and\u00e9',
        maxBatchSize: 3,
        input: [{ name: "X", data_type: "type_fp32", dims: ["16", -1] }],
        versionPolicy: { specific: { versions: ["1", 2] } },
        sequence_batching: { max_sequence_idle_microseconds: "9007199254740993", oldest: {} },
        parameters: { k: { string_value: "v" } },
        output: null,
      }),
    );
    expect(config).toMatchObject({
      name: 'a "name"\\ and\u00e9',
      max_batch_size: 3,
      input: [{ name: "X", data_type: "TYPE_FP32", dims: [16, -1] }],
      version_policy: { specific: { versions: [1, 2] } },
      sequence_batching: { max_sequence_idle_microseconds: 9007199254740993n },
      parameters: { k: { string_value: "v" } },
      output: [],
    });
  });

  it.each([
    ["[]", "the configuration is not a JSON object"],
    ["{", "Missing a name for object member"],
    ['{"max_batch": 1}', 'inference.ModelConfig has no field named "max_batch"'],
    ['{"input": {}}', '"input" must be an array'],
    ['{"input": [1]}', '"input" must be an object'],
    ['{"max_batch_size": "1 name: 2"}', '"max_batch_size" has an invalid value'],
    ['{"max_batch_size": 1.5}', "Expected integer, got: 1.5"],
    ['{"input": [{"data_type": "TYPE_NO"}]}', 'Unknown enumeration value of "TYPE_NO"'],
  ])("refuses %s", (source, words) => {
    expect(() => parseConfigJson(source)).toThrow("Invalid config override: ");
    expect(() => parseConfigJson(source)).toThrow(words);
  });
});
