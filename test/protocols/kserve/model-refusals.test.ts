/** Requests that do not fit their model are refused in Triton's words. */
import { describe, expect, it } from "vitest";
import { useGateway } from "../../support/gateway/test-gateway.js";
import { type Answer, expectRefusal, postInfer } from "../../support/gateway/http.js";
import { int32Input, withInput } from "../../fixtures/requests.js";

const gateway = useGateway();

const infer = (model: string, json: object | string, ...blocks: Buffer[]): Promise<Answer> =>
  postInfer(gateway, model, json, ...blocks);

const input = int32Input();

describe("a request that does not fit the model", () => {
  const ints = (name: string, shape: number[]): object => ({
    name,
    shape,
    datatype: "INT32",
    data: Array.from({ length: shape.reduce((product, dim) => product * dim, 1) }, () => 1),
  });
  const batched = (...inputs: object[]): object => ({ id: "9", inputs });
  const note =
    "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size.";

  // prettier-ignore
  const cases: [what: string, model: string, body: object, text: string][] = [
    ["an unknown output", "batched", { inputs: [], outputs: [{ name: "X" }] }, "unexpected inference output 'X' for model 'batched'"],
    ["a missing input", "batched", batched(ints("INPUT1", [1, 3])), "[request id: 9] expected 2 inputs but got 1 inputs for model 'batched'. Got input(s) ['INPUT1'], but missing required input(s) ['INPUT0']. Please provide all required input(s)."],
    ["no inputs", "batched", { inputs: [] }, "[request id: <id_unknown>] expected 2 inputs but got 0 inputs for model 'batched'. Got input(s) [], but missing required input(s) ['INPUT0','INPUT1']. Please provide all required input(s)."],
    ["an additional input", "echo-INT32", batched(input, { ...input, name: "X" }), "[request id: 9] expected 1 inputs but got 2 inputs for model 'echo-INT32'. Got input(s) ['INPUT0','X'], but missing required input(s) []. Please provide all required input(s)."],
    ["an unknown input", "batched", batched(ints("INPUT0", [1, 3]), ints("X", [1, 3])), "unexpected inference input 'X' for model 'batched'"],
    ["rank 0", "batched", batched(ints("INPUT0", []), ints("INPUT1", [1, 3])), "[request id: 9] input 'INPUT0' has no shape but model requires batch dimension for 'batched'"],
    ["differing batch sizes", "batched", batched(ints("INPUT0", [1, 3]), ints("INPUT1", [2, 3])), "[request id: 9] input 'INPUT1' batch size does not match other inputs for 'batched'"],
    ["a batch too large", "batched", batched(ints("INPUT0", [5, 3]), ints("INPUT1", [5, 3])), "[request id: 9] inference request batch-size must be <= 4 for 'batched'"],
    ["a batch of 0", "batched", batched(ints("INPUT0", [0, 3]), ints("INPUT1", [0, 3])), "[request id: 9] inference request batch-size must be >= 1 for 'batched'"],
    ["another datatype", "batched", batched({ ...ints("INPUT0", [1, 4]), datatype: "INT64" }, ints("INPUT1", [1, 3])), "[request id: 9] inference input 'INPUT0' data-type is 'INT64', but model 'batched' expects 'INT32'"],
    ["another shape", "batched", batched(ints("INPUT0", [1, 4]), ints("INPUT1", [1, 3])), `[request id: 9] unexpected shape for input 'INPUT0' for model 'batched'. Expected [-1,3], got [1,4]. ${note}`],
    ["another rank", "batched", batched(ints("INPUT0", [1, 3]), ints("INPUT1", [1, 3, 1])), `[request id: 9] unexpected shape for input 'INPUT1' for model 'batched'. Expected [-1,3], got [1,3,1]. ${note}`],
    ["another shape without batches", "echo-INT32", batched(ints("INPUT0", [1, 2])), "[request id: 9] unexpected shape for input 'INPUT0' for model 'echo-INT32'. Expected [-1], got [1,2]. "],
    ["several faults: the first in Triton's order", "batched", { inputs: [ints("X", [9, 4])], outputs: [{ name: "Y" }] }, "unexpected inference output 'Y' for model 'batched'"],
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

  // prettier-ignore
  const strings: [what: string, count: number, hex: string, text: string][] = [
    ["too few", 2, "01000000 61", "expected 2 string elements for inference input 'INPUT0' for model 'echo-BYTES', got 1"],
    ["too many", 1, "00000000 00000000", "unexpected number of string elements 2 for inference input 'INPUT0' for model 'echo-BYTES', expecting 1"],
    ["half a length", 2, "01000000 61 0000", "incomplete string length indicator for inference input 'INPUT0' for model 'echo-BYTES', expecting 4 bytes but only 2 bytes available. Please make sure the string length indicator is in one buffer."],
    ["a length beyond the buffer", 1, "02000000 61", "incomplete string data for inference input 'INPUT0' for model 'echo-BYTES', expecting string of length 2 but only 1 bytes available."],
    ["a length of 2^32-1", 1, "ffffffff 61", "incomplete string data for inference input 'INPUT0' for model 'echo-BYTES', expecting string of length 4294967295 but only 1 bytes available."],
    ["no bytes for half a billion", 2 ** 29 - 1, "00000000", "expected 536870911 string elements for inference input 'INPUT0' for model 'echo-BYTES', got 1"],
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

describe("a request that is no step of a sequence", () => {
  const step = (parameters: object, batch = 1): object => ({
    parameters,
    inputs: [{ name: "INPUT0", datatype: "INT32", shape: [batch, 1], data: Array.from({ length: batch }, () => 1) }],
  });
  const type = (got: string, model: string, expected: string): string =>
    `[request id: <id_unknown>] sequence batching control 'CORRID' data-type is '${got}', but model '${model}' expects '${expected}'`;
  const noId = (model: string): string =>
    `inference request to model '${model}' must specify a non-zero or non-empty correlation ID`;

  // prettier-ignore
  const cases: [what: string, model: string, body: object, text: string][] = [
    ["a text id for numbers", "seq", step({ sequence_id: "1" }), type("BYTES", "seq", "UINT64")],
    ["a number for text ids", "seq-string", step({ sequence_id: 1 }), type("UINT64", "seq-string", "BYTES")],
    ["no id for text ids", "seq-string", step({}), type("UINT64", "seq-string", "BYTES")],
    ["an empty id for numbers", "seq", step({ sequence_id: "" }), type("BYTES", "seq", "UINT64")],
    ["a batch of 2", "seq", step({ sequence_id: 1 }, 2), "inference request to model 'seq' must specify batch-size 1 due to requirements of sequence batcher"],
    ["a batch of 2 without an id", "seq", step({}, 2), "inference request to model 'seq' must specify batch-size 1 due to requirements of sequence batcher"],
    ["no id", "seq", step({ sequence_start: true }), noId("seq")],
    ["id 0", "seq-any", step({ sequence_id: 0 }), noId("seq-any")],
    ["an empty id", "seq-any", step({ sequence_id: "" }), noId("seq-any")],
    ["an empty id for texts", "seq-string", step({ sequence_id: "" }), noId("seq-string")],
  ];
  it.each(cases)("is refused: %s", async (_, model, body, text) => {
    expectRefusal(await infer(model, body), "invalid_argument", text);
  });
});
