/** Every refusal of the infer path by its text, since clients match on texts; rows A5 to A12, A21 to A23, A28, A29 and A31. */
import { deflateSync, gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { exchange, inferBody, startEchoGateway, type Answer, type EchoGateway } from "../../test/setup/echo-gateway.js";
import { errorKinds, InferenceError, type ErrorCode } from "#shared/errors.js";
import { defaultLimits } from "./limits.js";

const limits = { ...defaultLimits, jsonBytes: 100_000, binaryBytes: 200_000 };
let gateway: EchoGateway;
beforeAll(async () => {
  gateway = await startEchoGateway({ limits });
});
afterAll(() => gateway.server.close(0));
afterEach(() => {
  gateway.answer = undefined;
  gateway.admitted.length = 0;
});

const post = (path: string, body: Buffer | string, headers?: Record<string, string>): Promise<Answer> =>
  exchange(`${gateway.url}${path}`, body, headers);

function infer(model: string, json: object | string, ...blocks: Buffer[]): Promise<Answer> {
  const { headers, body } = inferBody(json, ...blocks);
  return post(`/v2/models/${model}/infer`, body, headers);
}

function expectRefusal(answer: Answer, code: ErrorCode, text: string): void {
  expect(JSON.parse(answer.json)).toEqual({ error: text, code });
  expect(answer.status).toBe(errorKinds[code].status);
  expect(answer.headers["content-type"]).toBe("application/json");
  expect(answer.headers["retry-after"]).toBe(errorKinds[code].retry ? "1" : undefined);
  expect(answer.headers["x-request-id"]).toMatch(/./);
}

const input = { name: "INPUT0", datatype: "INT32", shape: [1], data: [1] };
const unparsable = (name: string, type: string): string =>
  `Unable to parse '${name}': attempt to access JSON non-${type} as ${type}`;
const missing = (name: string): string =>
  `Unable to parse '${name}': attempt to access non-existing object member '${name}'`;
const without = (name: string): object => ({ inputs: [{ ...input, [name]: undefined }] });
const withInput = (members: object): object => ({ inputs: [{ ...input, ...members }] });
const withParameter = (name: string, value: unknown): object => ({ inputs: [input], parameters: { [name]: value } });
const dataOf = (datatype: string, ...data: unknown[]): object => withInput({ datatype, shape: [data.length], data });
const tooLarge = "input 'INPUT0' is larger than the limit of 2147483648 bytes";
const twoSources = (count: number): string =>
  `input 'INPUT0' must have exactly one of 'data', 'binary_data_size' and 'shared_memory_region', got ${count}`;
const sharedMemory = "Client shared memory is disabled. Send tensors in the request and take them from the response.";

describe("what cannot be parsed", () => {
  const cases: [what: string, body: object | string, text: string, code?: ErrorCode][] = [
    ["nothing", "", "failed to parse the request JSON buffer: The document is empty at 0", "invalid_json"],
    ["half a document", '{"inputs":', "failed to parse the request JSON buffer: Invalid value at 10", "invalid_json"],
    [
      "two documents",
      "{}{}",
      "failed to parse the request JSON buffer: The document root must not be followed by other values at 2",
      "invalid_json",
    ],
    ["a BOM", "\u{feff}{}", "failed to parse the request JSON buffer: Invalid value at 0", "invalid_json"],
    [
      "a list",
      "[]",
      "failed to parse the request JSON buffer: The document root must be an object at 0",
      "invalid_json",
    ],
    [
      "101 levels",
      `{"x":${"[".repeat(400)}`,
      "failed to parse the request JSON buffer: Nesting is deeper than the limit of 100 at 104",
      "invalid_json",
    ],
    [
      "1e999",
      '{"x":1e999}',
      "failed to parse the request JSON buffer: Number too big to be stored in double at 5",
      "invalid_json",
    ],
    [
      "a key twice",
      '{"id":"a","id":"b"}',
      "failed to parse the request JSON buffer: Duplicate name of object member at 10",
      "invalid_json",
    ],
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
    [
      "binary_data of another kind",
      { inputs: [input], outputs: [{ name: "OUTPUT0", parameters: { binary_data: 1 } }] },
      unparsable("binary_data", "boolean"),
    ],
    ["a negative dimension", withInput({ shape: [-1] }), unparsable("shape", "unsigned-integer")],
    ["a fractional dimension", withInput({ shape: [1.5] }), unparsable("shape", "unsigned-integer")],
    ["a text dimension", withInput({ shape: ["1"] }), unparsable("shape", "unsigned-integer")],
    [
      "a dimension beyond 2^53",
      `{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[9007199254740993]}]}`,
      unparsable("shape", "unsigned-integer"),
    ],
    ["2^32 x 2^32", withInput({ shape: [2 ** 32, 2 ** 32] }), tooLarge],
    ["2^32 x 2^32 x 0", withInput({ shape: [2 ** 32, 2 ** 32, 0] }), tooLarge],
    ["2^30 elements of 4 bytes", withInput({ shape: [2 ** 30] }), tooLarge],
    ["4 billion strings", withInput({ datatype: "BYTES", shape: [2 ** 32 - 1] }), tooLarge],
    [
      "rank 1000",
      withInput({ shape: Array.from({ length: 1000 }, () => 1) }),
      "input 'INPUT0' has rank 1000, the limit is 16",
    ],
    ["1025 inputs", { inputs: Array.from({ length: 1025 }, () => 0) }, "1025 inputs are more than the limit of 1024"],
    ["an unknown datatype", withInput({ datatype: "INT128" }), "invalid datatype for input INPUT0"],
    [
      "a datatype named like a member of all objects",
      withInput({ datatype: "constructor" }),
      "invalid datatype for input INPUT0",
    ],
    [
      "the same input twice",
      { id: "7", inputs: [input, input] },
      "[request id: 7] input 'INPUT0' already exists in request",
    ],
    [
      "the same output twice",
      { inputs: [input], outputs: [{ name: "OUTPUT0" }, { name: "OUTPUT0" }] },
      "[request id: <id_unknown>] output 'OUTPUT0' already requested",
    ],
    ["data and binary data", withInput({ parameters: { binary_data_size: 4 } }), twoSources(2)],
    ["all kinds of data", withInput({ parameters: { binary_data_size: 4, shared_memory_region: "r" } }), twoSources(3)],
    [
      "shared memory for an input",
      withInput({ data: undefined, parameters: { shared_memory_region: "r" } }),
      sharedMemory,
      "unsupported",
    ],
    [
      "shared memory for an output",
      { inputs: [input], outputs: [{ name: "OUTPUT0", parameters: { shared_memory_region: "r" } }] },
      sharedMemory,
      "unsupported",
    ],
    [
      "classification",
      { inputs: [input], outputs: [{ name: "OUTPUT0", parameters: { classification: 2 } }] },
      "classification of output 'OUTPUT0' is not supported",
      "unsupported",
    ],
    [
      "a negative binary size",
      withInput({ data: undefined, parameters: { binary_data_size: -1 } }),
      unparsable("binary_data_size", "unsigned-integer"),
    ],
    [
      "binary data without bytes",
      withInput({ data: undefined, parameters: { binary_data_size: 4 } }),
      "unexpected size for input 'INPUT0', expecting 4 additional bytes for model 'echo-INT32'",
    ],
    [
      "too many elements",
      withInput({ data: [1, 2] }),
      "Unable to parse 'data': Shape does not match true shape of 'data' field",
      "data_shape_mismatch",
    ],
    [
      "too few elements",
      withInput({ shape: [3] }),
      "Failed to parse 'data' field: shape does not match true shape",
      "data_shape_mismatch",
    ],
    [
      "too few elements, by far",
      withInput({ shape: [2 ** 28] }),
      "Failed to parse 'data' field: shape does not match true shape",
      "data_shape_mismatch",
    ],
    ["data that is no array", withInput({ data: 1 }), unparsable("data", "array")],
    ["a fraction among integers", dataOf("INT32", 1.5), unparsable("data", "signed-integer")],
    ["a string among integers", dataOf("UINT8", "1"), unparsable("data", "unsigned-integer")],
    ["a bool among long integers", dataOf("INT64", true), unparsable("data", "signed-integer")],
    [
      "an integer beyond 64 bits",
      `{"inputs":[{"name":"INPUT0","datatype":"UINT64","shape":[1],"data":[18446744073709551616]}]}`,
      unparsable("data", "unsigned-integer"),
    ],
    [
      "an integer below 64 bits",
      `{"inputs":[{"name":"INPUT0","datatype":"INT8","shape":[1],"data":[-9223372036854775809]}]}`,
      unparsable("data", "signed-integer"),
    ],
    [
      "NaN among integers",
      `{"inputs":[{"name":"INPUT0","datatype":"INT8","shape":[1],"data":[NaN]}]}`,
      unparsable("data", "signed-integer"),
    ],
    ["a number among bools", dataOf("BOOL", 1), unparsable("data", "boolean")],
    ["a string among floats", dataOf("FP32", "1"), unparsable("data", "number")],
    ["null among floats", dataOf("FP64", null), unparsable("data", "number")],
    ["a number among strings", dataOf("BYTES", 1), unparsable("data", "string")],
    ["an object among strings", dataOf("BYTES", {}), unparsable("data", "string")],
    [
      "FP16 as JSON",
      dataOf("FP16", 1),
      "receiving FP16 data via JSON is not supported. Please use the binary data format for input INPUT0",
    ],
    [
      "BF16 as JSON",
      dataOf("BF16", 1),
      "receiving BF16 data via JSON is not supported. Please use the binary data format for input INPUT0",
    ],
    [
      "a JSON tensor over the limit",
      withInput({ datatype: "FP64", shape: [20_000], data: Array.from({ length: 20_000 }, () => 1) }),
      "input 'INPUT0' takes 160000 bytes, more than the limit of 100000 bytes for a tensor given as JSON",
      "payload_too_large",
    ],
    [
      "a reserved parameter",
      withParameter("triton_x", 1),
      "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
    ],
    [
      "a list as parameter",
      withParameter("x", [1]),
      "parameter 'x' has invalid type. It should be either 'int', 'bool', 'string' or 'double'.",
    ],
    [
      "null as parameter",
      withParameter("x", null),
      "parameter 'x' has invalid type. It should be either 'int', 'bool', 'string' or 'double'.",
    ],
    [
      "binary_data_output as text",
      withParameter("binary_data_output", "true"),
      unparsable("binary_data_output", "boolean"),
    ],
    ["a negative priority", withParameter("priority", -1), unparsable("priority", "unsigned-integer")],
    [
      "a priority of 2^64",
      `{"parameters":{"priority":18446744073709551616},"inputs":[]}`,
      unparsable("priority", "unsigned-integer"),
    ],
    ["a negative timeout", withParameter("timeout", -1), unparsable("timeout", "unsigned-integer")],
    ["a fractional timeout", withParameter("timeout", 0.5), unparsable("timeout", "unsigned-integer")],
    [
      "a timeout over an hour",
      withParameter("timeout", 3_600_000_001),
      "timeout of 3600000001 microseconds is longer than the limit of 3600000000",
    ],
    [
      "a timeout of 2^64-1",
      `{"parameters":{"timeout":18446744073709551615},"inputs":[]}`,
      "timeout of 18446744073709551615 microseconds is longer than the limit of 3600000000",
    ],
    ["sequence_id -1", withParameter("sequence_id", -1), unparsable("sequence_id", "string")],
    ["sequence_id 1.5", withParameter("sequence_id", 1.5), unparsable("sequence_id", "string")],
    [
      "sequence_id 2^64",
      `{"parameters":{"sequence_id":18446744073709551616},"inputs":[]}`,
      unparsable("sequence_id", "string"),
    ],
    ["sequence_id true", withParameter("sequence_id", true), unparsable("sequence_id", "string")],
    ["sequence_start as text", withParameter("sequence_start", "true"), unparsable("sequence_start", "boolean")],
    ["sequence_end as number", withParameter("sequence_end", 1), unparsable("sequence_end", "boolean")],
    [
      "a sequence_id of 129 bytes",
      withParameter("sequence_id", `${"ü".repeat(64)}x`),
      "string correlation ID cannot be longer than 128 characters",
      "unsupported",
    ],
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

describe("what does not fit the model", () => {
  const ints = (name: string, shape: number[]): object => ({
    name,
    shape,
    datatype: "INT32",
    data: Array.from({ length: shape.reduce((product, dim) => product * dim, 1) }, () => 1),
  });
  const batched = (...inputs: object[]): object => ({ id: "9", inputs });
  const note =
    "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size.";

  const cases: [what: string, model: string, body: object, text: string][] = [
    [
      "an unknown output",
      "batched",
      { inputs: [], outputs: [{ name: "X" }] },
      "unexpected inference output 'X' for model 'batched'",
    ],
    [
      "a missing input",
      "batched",
      batched(ints("INPUT1", [1, 3])),
      "[request id: 9] expected 2 inputs but got 1 inputs for model 'batched'. Got input(s) ['INPUT1'], but missing required input(s) ['INPUT0']. Please provide all required input(s).",
    ],
    [
      "no inputs",
      "batched",
      { inputs: [] },
      "[request id: <id_unknown>] expected 2 inputs but got 0 inputs for model 'batched'. Got input(s) [], but missing required input(s) ['INPUT0','INPUT1']. Please provide all required input(s).",
    ],
    [
      "an additional input",
      "echo-INT32",
      batched(input, { ...input, name: "X" }),
      "[request id: 9] expected 1 inputs but got 2 inputs for model 'echo-INT32'. Got input(s) ['INPUT0','X'], but missing required input(s) []. Please provide all required input(s).",
    ],
    [
      "an unknown input",
      "batched",
      batched(ints("INPUT0", [1, 3]), ints("X", [1, 3])),
      "unexpected inference input 'X' for model 'batched'",
    ],
    [
      "rank 0",
      "batched",
      batched(ints("INPUT0", []), ints("INPUT1", [1, 3])),
      "[request id: 9] input 'INPUT0' has no shape but model requires batch dimension for 'batched'",
    ],
    [
      "differing batch sizes",
      "batched",
      batched(ints("INPUT0", [1, 3]), ints("INPUT1", [2, 3])),
      "[request id: 9] input 'INPUT1' batch size does not match other inputs for 'batched'",
    ],
    [
      "a batch too large",
      "batched",
      batched(ints("INPUT0", [5, 3]), ints("INPUT1", [5, 3])),
      "[request id: 9] inference request batch-size must be <= 4 for 'batched'",
    ],
    [
      "a batch of 0",
      "batched",
      batched(ints("INPUT0", [0, 3]), ints("INPUT1", [0, 3])),
      "[request id: 9] inference request batch-size must be >= 1 for 'batched'",
    ],
    [
      "another datatype",
      "batched",
      batched({ ...ints("INPUT0", [1, 4]), datatype: "INT64" }, ints("INPUT1", [1, 3])),
      "[request id: 9] inference input 'INPUT0' data-type is 'INT64', but model 'batched' expects 'INT32'",
    ],
    [
      "another shape",
      "batched",
      batched(ints("INPUT0", [1, 4]), ints("INPUT1", [1, 3])),
      `[request id: 9] unexpected shape for input 'INPUT0' for model 'batched'. Expected [-1,3], got [1,4]. ${note}`,
    ],
    [
      "another rank",
      "batched",
      batched(ints("INPUT0", [1, 3]), ints("INPUT1", [1, 3, 1])),
      `[request id: 9] unexpected shape for input 'INPUT1' for model 'batched'. Expected [-1,3], got [1,3,1]. ${note}`,
    ],
    [
      "another shape without batches",
      "echo-INT32",
      batched(ints("INPUT0", [1, 2])),
      "[request id: 9] unexpected shape for input 'INPUT0' for model 'echo-INT32'. Expected [-1], got [1,2]. ",
    ],
    [
      "several faults: the first in Triton's order",
      "batched",
      { inputs: [ints("X", [9, 4])], outputs: [{ name: "Y" }] },
      "unexpected inference output 'Y' for model 'batched'",
    ],
  ];
  it.each(cases)("is refused: %s", async (_, model, body, text) => {
    expectRefusal(await infer(model, body), "invalid_argument", text);
    expect(gateway.admitted).toEqual([]);
  });

  it("is refused: bytes that are not as many as the shape says", async () => {
    const body = withInput({ shape: [2], data: undefined, parameters: { binary_data_size: 7 } });
    const text =
      "[request id: <id_unknown>] input byte size mismatch for input 'INPUT0' for model 'echo-INT32'. Expected 8, got 7";
    expectRefusal(await infer("echo-INT32", body, Buffer.alloc(7)), "invalid_argument", text);
  });

  it.each(["FP16", "BF16"])("is refused before the model runs: an output of %s as JSON", async (datatype) => {
    const body = { inputs: [{ name: "INPUT0", datatype, shape: [1], parameters: { binary_data_size: 2 } }] };
    const text = `sending ${datatype} data via JSON is not supported. Please use the binary data format for output OUTPUT0`;
    expectRefusal(await infer(`echo-${datatype}`, body, Buffer.alloc(2)), "invalid_argument", text);
    expect(gateway.admitted).toEqual([]);
  });

  const strings: [what: string, count: number, hex: string, text: string][] = [
    [
      "too few",
      2,
      "01000000 61",
      "expected 2 string elements for inference input 'INPUT0' for model 'echo-BYTES', got 1",
    ],
    [
      "too many",
      1,
      "00000000 00000000",
      "unexpected number of string elements 2 for inference input 'INPUT0' for model 'echo-BYTES', expecting 1",
    ],
    [
      "half a length",
      2,
      "01000000 61 0000",
      "incomplete string length indicator for inference input 'INPUT0' for model 'echo-BYTES', expecting 4 bytes but only 2 bytes available. Please make sure the string length indicator is in one buffer.",
    ],
    [
      "a length beyond the buffer",
      1,
      "02000000 61",
      "incomplete string data for inference input 'INPUT0' for model 'echo-BYTES', expecting string of length 2 but only 1 bytes available.",
    ],
    [
      "a length of 2^32-1",
      1,
      "ffffffff 61",
      "incomplete string data for inference input 'INPUT0' for model 'echo-BYTES', expecting string of length 4294967295 but only 1 bytes available.",
    ],
    [
      "no bytes for half a billion",
      2 ** 29 - 1,
      "00000000",
      "expected 536870911 string elements for inference input 'INPUT0' for model 'echo-BYTES', got 1",
    ],
  ];
  it.each(strings)("is refused: strings, %s", async (_, count, hex, text) => {
    const raw = Buffer.from(hex.replaceAll(" ", ""), "hex");
    const body = withInput({
      datatype: "BYTES",
      shape: [count],
      data: undefined,
      parameters: { binary_data_size: raw.length },
    });
    expectRefusal(await infer("echo-BYTES", body, raw), "invalid_argument", `[request id: <id_unknown>] ${text}`);
  });
});

describe("what is no sequence's step", () => {
  const step = (parameters: object, batch = 1): object => ({
    parameters,
    inputs: [{ name: "INPUT0", datatype: "INT32", shape: [batch, 1], data: Array.from({ length: batch }, () => 1) }],
  });
  const type = (got: string, model: string, expected: string): string =>
    `[request id: <id_unknown>] sequence batching control 'CORRID' data-type is '${got}', but model '${model}' expects '${expected}'`;
  const noId = (model: string): string =>
    `inference request to model '${model}' must specify a non-zero or non-empty correlation ID`;

  const cases: [what: string, model: string, body: object, text: string][] = [
    ["a text id for numbers", "seq", step({ sequence_id: "1" }), type("BYTES", "seq", "UINT64")],
    ["a number for text ids", "seq-string", step({ sequence_id: 1 }), type("UINT64", "seq-string", "BYTES")],
    ["no id for text ids", "seq-string", step({}), type("UINT64", "seq-string", "BYTES")],
    ["an empty id for numbers", "seq", step({ sequence_id: "" }), type("BYTES", "seq", "UINT64")],
    [
      "a batch of 2",
      "seq",
      step({ sequence_id: 1 }, 2),
      "inference request to model 'seq' must specify batch-size 1 due to requirements of sequence batcher",
    ],
    [
      "a batch of 2 without an id",
      "seq",
      step({}, 2),
      "inference request to model 'seq' must specify batch-size 1 due to requirements of sequence batcher",
    ],
    ["no id", "seq", step({ sequence_start: true }), noId("seq")],
    ["id 0", "seq-any", step({ sequence_id: 0 }), noId("seq-any")],
    ["an empty id", "seq-any", step({ sequence_id: "" }), noId("seq-any")],
    ["an empty id for texts", "seq-string", step({ sequence_id: "" }), noId("seq-string")],
  ];
  it.each(cases)("is refused: %s", async (_, model, body, text) => {
    expectRefusal(await infer(model, body), "invalid_argument", text);
  });
});

describe("sizes", () => {
  const post413 = async (body: Buffer | string, headers: Record<string, string>, text: string): Promise<void> => {
    expectRefusal(await post("/v2/models/echo-INT32/infer", body, headers), "payload_too_large", text);
  };
  const larger = (bytes: number): string => `request body is larger than the limit of ${bytes} bytes`;
  const big = Buffer.alloc(200_001, " ");

  it("are limited for JSON and for binary requests, with a length or chunked", async () => {
    await post413(big.subarray(0, 100_001), {}, larger(100_000));
    await post413(big.subarray(0, 100_001), { "transfer-encoding": "chunked" }, larger(100_000));
    await post413(big, { "inference-header-content-length": "2" }, larger(200_000));
    await post413(big, { "inference-header-content-length": "2", "transfer-encoding": "chunked" }, larger(200_000));
    const header = { "inference-header-content-length": "150000" };
    await post413(big.subarray(0, 150_001), header, "request JSON is larger than the limit of 100000 bytes");
  });

  it.each([
    ["gzip", gzipSync],
    ["deflate", deflateSync],
  ])("are limited after undoing %s", async (encoding, pack) => {
    const bomb = pack(Buffer.alloc(50_000_000));
    await post413(bomb, { "content-encoding": encoding }, `${larger(100_000)} after decompression`);
  });

  const packed = gzipSync(JSON.stringify({ inputs: [input] }));
  it.each([
    ["truncated", packed.subarray(0, -5)],
    ["followed by more", Buffer.concat([packed, Buffer.from("more")])],
    ["no gzip at all", Buffer.from("{}")],
    ["empty", Buffer.alloc(0)],
  ])("refuse a body that is %s", async (_, body) => {
    const answer = await post("/v2/models/echo-INT32/infer", body, { "content-encoding": "gzip" });
    expectRefusal(answer, "invalid_argument", "failed to decompress the request body");
  });

  it("refuses what was compressed twice", async () => {
    const answer = await post("/v2/models/echo-INT32/infer", gzipSync(packed), { "content-encoding": "gzip" });
    expect(JSON.parse(answer.json)).toMatchObject({ code: "invalid_json" });
  });

  it.each(["br", "gzip, gzip", "zstd", "constructor"])(
    "refuses the encoding %s and names its own",
    async (encoding) => {
      const answer = await post("/v2/models/echo-INT32/infer", "{}", { "content-encoding": encoding });
      expectRefusal(answer, "unsupported", "Unsupported compression type");
      expect(answer.headers["accept-encoding"]).toBe("gzip, deflate");
    },
  );
});

describe("models", () => {
  const unknown = (rest: string): string => `Request for unknown model: ${rest}`;
  it.each<[path: string, code: ErrorCode, text: string]>([
    ["x", "unknown_model", unknown("'x' is not found")],
    ["broken", "unknown_model", unknown("'broken' has no available versions")],
    ["broken/versions/1", "model_unavailable", unknown("'broken' version 1 is not at ready state")],
    ["two/versions/3", "unknown_model", unknown("'two' version 3 is not found")],
    ["two/versions/01", "unknown_model", unknown("'two' version 01 is not found")],
    ["two/versions/2147483648", "unknown_model", unknown("'two' version 2147483648 is not found")],
    ["two/versions/1/../2", "not_found", "Not Found"],
    ["two/versions/1%2F..%2F2", "not_found", "Not Found"],
    ["two/versions/-1", "not_found", "Not Found"],
    ["two/versions/latest", "not_found", "Not Found"],
    ["%2e%2e%2ftwo", "unknown_model", unknown("'../two' is not found")],
    ["tw%6F%00", "unknown_model", unknown("'two\u0000' is not found")],
    ["two%0d%0aX: y", "unknown_model", unknown("'two\r\nX: y' is not found")],
    ["two%252e", "unknown_model", unknown("'two%2e' is not found")],
  ])("/v2/models/%s/infer is refused", async (path, code, text) => {
    expectRefusal(await post(encodeURI(`/v2/models/${path}/infer`).replaceAll("%25", "%"), "{}"), code, text);
  });

  it("has its name decoded once", async () => {
    expect((await post("/v2/models/tw%6F/infer", "{}")).json).toContain(missing("inputs"));
  });

  it.each(["%E0%A4%A", "%c0%ae%c0%ae", "a".repeat(10_000), ".."])("is not found as %s", async (name) => {
    expect((await post(`/v2/models/${name}/infer`, "{}")).status).toBe(404);
  });
});

describe("Idempotency-Key", () => {
  it.each([["ä"], ["a".repeat(256)], [""], ["a\tb"]])("is refused as '%s'", async (key) => {
    const answer = await post("/v2/models/echo-INT32/infer", JSON.stringify({ inputs: [input] }), {
      "idempotency-key": key,
    });
    expectRefusal(answer, "invalid_argument", "Idempotency-Key must be 1 to 255 printable ASCII characters");
  });
});

describe("an outcome that is an error", () => {
  it.each(Object.keys(errorKinds) as ErrorCode[])("of code %s keeps its text and gets its status", async (code) => {
    gateway.answer = () => Promise.resolve({ kind: "error", code, message: "said so" });
    expectRefusal(await infer("echo-INT32", { inputs: [input] }), code, "said so");
  });
});

describe("a bug", () => {
  it("shows nothing of itself, and is logged once", async () => {
    gateway.answer = () => Promise.reject(new TypeError("secret path /etc/x"));
    const answer = await post("/v2/models/echo-INT32/infer", JSON.stringify({ inputs: [input] }), {
      "x-request-id": "r-1",
    });
    expectRefusal(answer, "internal", "internal error");
    expect(gateway.logged).toEqual([
      {
        line: "request handler failed",
        fields: {
          err: expect.any(TypeError) as unknown,
          requestId: "r-1",
          method: "POST",
          path: "/v2/models/echo-INT32/infer",
        },
      },
    ]);
    gateway.logged.length = 0;
  });

  it("is not what a thrown refusal is", async () => {
    gateway.answer = () => Promise.reject(new InferenceError("unavailable", "not now"));
    expectRefusal(await infer("echo-INT32", { inputs: [input] }), "unavailable", "not now");
    expect(gateway.logged).toEqual([]);
  });

  it("is not bytes that JSON cannot hold", async () => {
    const body = withInput({ datatype: "BYTES", data: undefined, parameters: { binary_data_size: 5 } });
    const text =
      "sending BYTES data that is not UTF-8 via JSON is not supported. Please use the binary data format for output OUTPUT0";
    expectRefusal(await infer("echo-BYTES", body, Buffer.from("01000000ff", "hex")), "invalid_argument", text);
  });
});
