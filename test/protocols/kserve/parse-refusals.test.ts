/**
 * Infer bodies that a gateway refuses. Each case expects the whole text of the refusal, since
 * clients match on texts.
 */
import { describe, expect, it } from "vitest";
import type { ErrorCode } from "#shared/errors.js";
import { defaultLimits } from "../../../gateway/formats/limits.js";
import { useGateway } from "../../support/gateway/test-gateway.js";
import { type Answer, exchange, expectRefusal, postInfer, type Body } from "../../support/gateway/http.js";
import { int32Input, withInput } from "../../fixtures/requests.js";

const gateway = useGateway({ limits: { ...defaultLimits, jsonBytes: 100_000 } });

const post = (path: string, body: Body, headers?: Record<string, string>): Promise<Answer> =>
  exchange(gateway.url + path, body, headers);

const infer = (model: string, json: object | string, ...blocks: Buffer[]): Promise<Answer> =>
  postInfer(gateway, model, json, ...blocks);

const input = int32Input();
const unparsable = (name: string, type: string): string =>
  `Unable to parse '${name}': attempt to access JSON non-${type} as ${type}`;
const missing = (name: string): string =>
  `Unable to parse '${name}': attempt to access non-existing object member '${name}'`;
const without = (name: string): object => ({ inputs: [{ ...input, [name]: undefined }] });
const withParameter = (name: string, value: unknown): object => ({ inputs: [input], parameters: { [name]: value } });
const dataOf = (datatype: string, ...data: unknown[]): object => withInput({ datatype, shape: [data.length], data });
const tooLarge = "input 'INPUT0' is larger than the limit of 2147483648 bytes";
const twoSources = (count: number): string =>
  `input 'INPUT0' must have exactly one of 'data', 'binary_data_size' and 'shared_memory_region', got ${count}`;
const sharedMemory = "Client shared memory is disabled. Send tensors in the request and take them from the response.";

describe("a body that cannot be parsed", () => {
  // prettier-ignore
  const cases: [what: string, body: object | string, text: string, code?: ErrorCode][] = [
    ["nothing", "", "failed to parse the request JSON buffer: The document is empty at 0", "invalid_json"],
    ["half a document", '{"inputs":', "failed to parse the request JSON buffer: Invalid value at 10", "invalid_json"],
    ["two documents", "{}{}", "failed to parse the request JSON buffer: The document root must not be followed by other values at 2", "invalid_json"],
    ["a BOM", "\u{feff}{}", "failed to parse the request JSON buffer: Invalid value at 0", "invalid_json"],
    ["a list", "[]", "failed to parse the request JSON buffer: The document root must be an object at 0", "invalid_json"],
    ["101 levels", `{"x":${"[".repeat(400)}`, "failed to parse the request JSON buffer: JSON nesting depth exceeds maximum allowed limit (100) at 104", "invalid_json"],
    ["1e999", '{"x":1e999}', "failed to parse the request JSON buffer: Number too big to be stored in double at 5", "invalid_json"],
    ["a key twice", '{"id":"a","id":"b"}', "failed to parse the request JSON buffer: Duplicate name of object member at 10", "invalid_json"],
    ["no inputs", {}, missing("inputs")],
    ["inputs of another kind", { inputs: {} }, unparsable("inputs", "array")],
    ["an input of another kind", { inputs: [1] }, unparsable("inputs", "object")],
    ["no name", without("name"), missing("name")],
    ["no shape", without("shape"), missing("shape")],
    ["no datatype", without("datatype"), missing("datatype")],
    ["no data", without("data"), missing("data")],
    ["a number for a name", withInput({ name: 1 }), unparsable("name", "string")],
    ["a number for an id", { id: 1, inputs: [input] }, unparsable("id", "string")],
    ["null for an id", { id: null, inputs: [input] }, unparsable("id", "string")],
    ["parameters of another kind", { parameters: [], inputs: [input] }, unparsable("parameters", "object")],
    ["an input's parameters of another kind", withInput({ parameters: 1 }), unparsable("parameters", "object")],
    ["outputs of another kind", { inputs: [input], outputs: "OUTPUT0" }, unparsable("outputs", "array")],
    ["an output of another kind", { inputs: [input], outputs: ["OUTPUT0"] }, unparsable("outputs", "object")],
    ["an output without a name", { inputs: [input], outputs: [{}] }, missing("name")],
    ["binary_data of another kind", { inputs: [input], outputs: [{ name: "OUTPUT0", parameters: { binary_data: 1 } }] }, unparsable("binary_data", "boolean")],
    ["a negative dimension", withInput({ shape: [-1] }), unparsable("shape", "unsigned-integer")],
    ["a fractional dimension", withInput({ shape: [1.5] }), unparsable("shape", "unsigned-integer")],
    ["a text dimension", withInput({ shape: ["1"] }), unparsable("shape", "unsigned-integer")],
    ["a dimension beyond 2^53", `{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[9007199254740993]}]}`, unparsable("shape", "unsigned-integer")],
    ["2^32 x 2^32", withInput({ shape: [2 ** 32, 2 ** 32] }), tooLarge],
    ["2^32 x 2^32 x 0", withInput({ shape: [2 ** 32, 2 ** 32, 0] }), tooLarge],
    ["2^30 elements of 4 bytes", withInput({ shape: [2 ** 30] }), tooLarge],
    ["4 billion strings", withInput({ datatype: "BYTES", shape: [2 ** 32 - 1] }), tooLarge],
    ["rank 1000", withInput({ shape: Array.from({ length: 1000 }, () => 1) }), "input 'INPUT0' has rank 1000, the limit is 16"],
    ["1025 inputs", { inputs: Array.from({ length: 1025 }, () => 0) }, "1025 inputs are more than the limit of 1024"],
    ["an unknown datatype", withInput({ datatype: "INT128" }), "invalid datatype for input INPUT0"],
    ["a datatype named like a member of all objects", withInput({ datatype: "constructor" }), "invalid datatype for input INPUT0"],
    ["the same input twice", { id: "7", inputs: [input, input] }, "[request id: 7] input 'INPUT0' already exists in request"],
    ["the same output twice", { inputs: [input], outputs: [{ name: "OUTPUT0" }, { name: "OUTPUT0" }] }, "[request id: <id_unknown>] output 'OUTPUT0' already exists in request"],
    ["data and binary data", withInput({ parameters: { binary_data_size: 4 } }), twoSources(2)],
    ["all kinds of data", withInput({ parameters: { binary_data_size: 4, shared_memory_region: "r" } }), twoSources(3)],
    ["shared memory for an input", withInput({ data: undefined, parameters: { shared_memory_region: "r" } }), sharedMemory, "unsupported"],
    ["shared memory for an output", { inputs: [input], outputs: [{ name: "OUTPUT0", parameters: { shared_memory_region: "r" } }] }, sharedMemory, "unsupported"],
    ["a negative binary size", withInput({ data: undefined, parameters: { binary_data_size: -1 } }), unparsable("binary_data_size", "unsigned-integer")],
    ["binary data without bytes", withInput({ data: undefined, parameters: { binary_data_size: 4 } }), "unexpected size for input 'INPUT0', expecting 4 additional bytes for model 'echo-INT32'"],
    ["too many elements", withInput({ data: [1, 2] }), "Unable to parse 'data': Shape does not match true shape of 'data' field", "data_shape_mismatch"],
    ["too few elements", withInput({ shape: [3] }), "Failed to parse 'data' field: shape does not match true shape", "data_shape_mismatch"],
    ["too few elements, by far", withInput({ shape: [2 ** 28] }), "Failed to parse 'data' field: shape does not match true shape", "data_shape_mismatch"],
    ["data that is no array", withInput({ data: 1 }), unparsable("data", "array")],
    ["a fraction among integers", dataOf("INT32", 1.5), unparsable("data", "signed-integer")],
    ["a string among integers", dataOf("UINT8", "1"), unparsable("data", "unsigned-integer")],
    ["a bool among long integers", dataOf("INT64", true), unparsable("data", "signed-integer")],
    ["an integer beyond 64 bits", `{"inputs":[{"name":"INPUT0","datatype":"UINT64","shape":[1],"data":[18446744073709551616]}]}`, unparsable("data", "unsigned-integer")],
    ["an integer below 64 bits", `{"inputs":[{"name":"INPUT0","datatype":"INT8","shape":[1],"data":[-9223372036854775809]}]}`, unparsable("data", "signed-integer")],
    ["NaN among integers", `{"inputs":[{"name":"INPUT0","datatype":"INT8","shape":[1],"data":[NaN]}]}`, unparsable("data", "signed-integer")],
    ["a number among bools", dataOf("BOOL", 1), unparsable("data", "boolean")],
    ["a string among floats", dataOf("FP32", "1"), unparsable("data", "number")],
    ["null among floats", dataOf("FP64", null), unparsable("data", "number")],
    ["a number among strings", dataOf("BYTES", 1), unparsable("data", "string")],
    ["an object among strings", dataOf("BYTES", {}), unparsable("data", "string")],
    ["FP16 as JSON", dataOf("FP16", 1), "receiving FP16 data via JSON is not supported. Please use the binary data format for input INPUT0"],
    ["BF16 as JSON", dataOf("BF16", 1), "receiving BF16 data via JSON is not supported. Please use the binary data format for input INPUT0"],
    ["a JSON tensor over the limit", withInput({ datatype: "FP64", shape: [20_000], data: Array.from({ length: 20_000 }, () => 1) }), "input 'INPUT0' takes 160000 bytes, more than the limit of 100000 bytes for a tensor given as JSON", "payload_too_large"],
    ["a reserved parameter", withParameter("triton_x", 1), "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified."],
    ["a list as parameter", withParameter("x", [1]), "parameter 'x' has invalid type. It should be either 'int', 'bool', 'string' or 'double'."],
    ["null as parameter", withParameter("x", null), "parameter 'x' has invalid type. It should be either 'int', 'bool', 'string' or 'double'."],
    ["binary_data_output as text", withParameter("binary_data_output", "true"), unparsable("binary_data_output", "boolean")],
    ["a negative priority", withParameter("priority", -1), unparsable("priority", "unsigned-integer")],
    ["a priority", withParameter("priority", 1), "priority 1 is not supported: models have no priority levels, and requests are taken in the order in which they come"],
    ["a priority of 2^64", `{"parameters":{"priority":18446744073709551616},"inputs":[]}`, unparsable("priority", "unsigned-integer")],
    ["a negative timeout", withParameter("timeout", -1), unparsable("timeout", "unsigned-integer")],
    ["a fractional timeout", withParameter("timeout", 0.5), unparsable("timeout", "unsigned-integer")],
    ["a timeout over an hour", withParameter("timeout", 3_600_000_001), "timeout of 3600000001 microseconds is longer than the limit of 3600000000"],
    ["a timeout of 2^64-1", `{"parameters":{"timeout":18446744073709551615},"inputs":[]}`, "timeout of 18446744073709551615 microseconds is longer than the limit of 3600000000"],
    ["sequence_id -1", withParameter("sequence_id", -1), unparsable("sequence_id", "string")],
    ["sequence_id 1.5", withParameter("sequence_id", 1.5), unparsable("sequence_id", "string")],
    ["sequence_id 2^64", `{"parameters":{"sequence_id":18446744073709551616},"inputs":[]}`, unparsable("sequence_id", "string")],
    ["sequence_id true", withParameter("sequence_id", true), unparsable("sequence_id", "string")],
    ["sequence_start as text", withParameter("sequence_start", "true"), unparsable("sequence_start", "boolean")],
    ["sequence_end as number", withParameter("sequence_end", 1), unparsable("sequence_end", "boolean")],
    ["a sequence_id of 129 bytes", withParameter("sequence_id", `${"ü".repeat(64)}x`), "string correlation ID cannot be longer than 128 characters", "unsupported"],
  ];
  it.each(cases)("is refused: %s", async (_, body, text, code = "invalid_argument") => {
    expectRefusal(await infer("echo-INT32", body), code, text);
    expect(gateway.admitted).toEqual([]);
  });

  it("is refused: invalid UTF-8", async () => {
    const text = "failed to parse the request JSON buffer: The document is not valid UTF-8 at 0";
    expectRefusal(await post("/v2/models/echo-INT32/infer", Buffer.from([0x7b, 0xff, 0x7d])), "invalid_json", text);
  });
});

describe("the binary extension", () => {
  const binary = (size: number): object => withInput({ data: undefined, parameters: { binary_data_size: size } });

  it("refuses too few bytes, and too many", async () => {
    const short = "unexpected size for input 'INPUT0', expecting 1 additional bytes for model 'echo-INT32'";
    expectRefusal(await infer("echo-INT32", binary(4), Buffer.alloc(3)), "invalid_argument", short);
    const long = "unexpected additional input data for model 'echo-INT32'";
    expectRefusal(await infer("echo-INT32", binary(4), Buffer.alloc(5)), "invalid_argument", long);
    expectRefusal(await infer("echo-INT32", { inputs: [input] }, Buffer.alloc(1)), "invalid_argument", long);
  });

  it.each(["-1", "3", "18446744073709551616", "1e3", "0x2", "", " ", "2, 2"])(
    "refuses a header length of '%s'",
    async (length) => {
      const answer = await post("/v2/models/echo-INT32/infer", "{}", { "inference-header-content-length": length });
      const text = `inference header size should be in range (0, 2), got: ${length.trim()}`;
      expectRefusal(answer, "invalid_argument", text);
    },
  );

  it.each([
    [
      "two",
      8,
      "Raw request must only have 1 input (found 1) to be deduced but got 2 inputs in 'two' model configuration",
    ],
    [
      "wild",
      8,
      "The shape of the raw input 'INPUT0' can not be deduced because there are more than one variable-sized dimension",
    ],
    ["echo-BYTES", 8, "For BYTE datatype raw input 'INPUT0', the model must have input shape [1]"],
    ["echo-INT32", 7, "unexpected total byte size 7 for raw input 'INPUT0', expecting multiple of 4"],
    ["seq", 7, "unexpected total byte size 7 for raw input 'INPUT0', expecting multiple of 4"],
  ])("refuses a raw request to '%s' of %i bytes", async (model, bytes, text) => {
    const answer = await post(`/v2/models/${model}/infer`, Buffer.alloc(bytes), {
      "inference-header-content-length": "0",
    });
    expectRefusal(answer, "invalid_argument", `[request id: <id_unknown>] ${text}`);
  });
});
