/**
 * Results of `infer`: every datatype, as JSON and as bytes, in both directions. Refusals are in
 * `infer-refusals.test.ts`.
 */
import { describe, expect, it } from "vitest";
import type { Datatype } from "#shared/model/datatype.js";
import { useGateway } from "../../support/gateway/test-gateway.js";
import { type Answer, exchange, postInfer, type Body } from "../../support/gateway/http.js";
import { datatypes } from "../../fixtures/served-models.js";
import { hex, int32Input, twoInputs } from "../../fixtures/requests.js";

const gateway = useGateway();

const post = (path: string, body: Body, headers?: Record<string, string>): Promise<Answer> =>
  exchange(gateway.url + path, body, headers);

const infer = (model: string, json: object | string, ...blocks: Buffer[]): Promise<Answer> =>
  postInfer(gateway, model, json, ...blocks);

/** Elements as a client writes them, their bytes, and their text in the answer. */
const samples: Record<Datatype, { given?: string; raw: Buffer; printed?: string; count: number }> = {
  BOOL: { given: "true,false", raw: hex("01 00"), count: 2 },
  INT8: { given: "-128,127,200,-129", raw: hex("80 7f c8 7f"), printed: "-128,127,-56,127", count: 4 },
  UINT8: { given: "0,255,256,-1", raw: hex("00 ff 00 ff"), printed: "0,255,0,255", count: 4 },
  INT16: { given: "-32768,32768", raw: hex("0080 0080"), printed: "-32768,-32768", count: 2 },
  UINT16: { given: "65535,65536", raw: hex("ffff 0000"), printed: "65535,0", count: 2 },
  INT32: {
    given: "-2,2147483648,9007199254740993",
    raw: hex("feffffff 00000080 01000000"),
    printed: "-2,-2147483648,1",
    count: 3,
  },
  UINT32: { given: "4294967295,-1", raw: hex("ffffffff ffffffff"), printed: "4294967295,4294967295", count: 2 },
  INT64: {
    given: "-1,9007199254740991,9007199254740993,-9223372036854775808,9223372036854775807,-4294967297",
    raw: hex("ffffffffffffffff ffffffffffff1f00 0100000000002000 0000000000000080 ffffffffffffff7f fffffffffeffffff"),
    count: 6,
  },
  UINT64: { given: "18446744073709551615,42", raw: hex("ffffffffffffffff 2a00000000000000"), count: 2 },
  FP16: { raw: hex("003c 007e"), count: 2 },
  BF16: { raw: hex("803f c07f"), count: 2 },
  FP32: {
    given: "0.1,-0,1,NaN,Infinity,-Inf,1e-3,1e30",
    raw: hex("cdcccc3d 00000080 0000803f 0000c07f 0000807f 000080ff 6f12833a caf24971"),
    printed: "0.10000000149011612,-0.0,1.0,NaN,Infinity,-Infinity,0.0010000000474974513,1.0000000150474662e+30",
    count: 8,
  },
  FP64: {
    given: "0.1,9007199254740993,-0.0",
    raw: hex("9a9999999999b93f 0000000000004043 0000000000000080"),
    printed: "0.1,9007199254740992.0,-0.0",
    count: 3,
  },
  BYTES: { given: '"ab","","ü\\n"', raw: hex("02000000 6162 00000000 03000000 c3bc0a"), count: 3 },
};

const inJson = datatypes.filter((datatype) => samples[datatype].given !== undefined);

describe("one tensor", () => {
  for (const datatype of datatypes) {
    const { given, raw, printed = given, count } = samples[datatype];
    const output = (binary: boolean): object => ({ name: "OUTPUT0", parameters: { binary_data: binary } });
    const bytesIn = { name: "INPUT0", datatype, shape: [count], parameters: { binary_data_size: raw.length } };
    const entry = `{"name":"OUTPUT0","datatype":"${datatype}","shape":[${count}]`;
    const head = `{"model_name":"echo-${datatype}","model_version":"1","outputs":[`;

    it(`of ${datatype}, bytes to bytes`, async () => {
      const answer = await infer(`echo-${datatype}`, { inputs: [bytesIn], outputs: [output(true)] }, raw);
      expect(answer.json).toBe(`${head}${entry},"parameters":{"binary_data_size":${raw.length}}}]}`);
      expect(answer.blocks).toEqual(raw);
      expect(answer.headers).toMatchObject({
        "content-type": "application/octet-stream",
        "content-length": String(answer.json.length + raw.length),
      });
    });

    if (given === undefined) continue;
    const jsonIn = `{"name":"INPUT0","datatype":"${datatype}","shape":[${count}],"data":[${given}]}`;

    it(`of ${datatype}, JSON to JSON`, async () => {
      const answer = await infer(`echo-${datatype}`, `{"inputs":[${jsonIn}]}`);
      expect(answer.json).toBe(`${head}${entry},"data":[${printed}]}]}`);
      expect(answer.headers["content-type"]).toBe("application/json");
      expect(answer.headers).not.toHaveProperty("inference-header-content-length");
    });

    it(`of ${datatype}, JSON to bytes`, async () => {
      const answer = await infer(`echo-${datatype}`, `{"parameters":{"binary_data_output":true},"inputs":[${jsonIn}]}`);
      expect(answer.blocks).toEqual(raw);
    });

    it(`of ${datatype}, bytes to JSON`, async () => {
      const answer = await infer(`echo-${datatype}`, { inputs: [bytesIn] }, raw);
      expect(answer.json).toBe(`${head}${entry},"data":[${printed}]}]}`);
    });
  }
});

describe("all datatypes in one request", () => {
  it.each([
    ["odd as JSON", 1],
    ["even as JSON", 0],
  ])("mixes JSON and bytes, %s", async (_, parity) => {
    const blocks: Buffer[] = [];
    const inputs = datatypes.map((datatype, index) => {
      const { given, raw, count } = samples[datatype];
      const head = `{"name":"INPUT${index}","datatype":"${datatype}","shape":[${count}]`;
      if (given !== undefined && index % 2 === parity) return `${head},"data":[${given}]}`;
      blocks.push(raw);
      return `${head},"parameters":{"binary_data_size":${raw.length}}}`;
    });
    const outputs = datatypes.map((datatype, index) => ({
      name: `OUTPUT${index}`,
      parameters: { binary_data: !inJson.includes(datatype) || index % 3 === 0 },
    }));
    const answer = await infer(
      "all",
      `{"inputs":[${inputs.join(",")}],"outputs":${JSON.stringify(outputs)}}`,
      ...blocks,
    );
    expect(answer.status, answer.json).toBe(200);
    const binary = datatypes.filter((_, index) => outputs[index]?.parameters.binary_data);
    expect(answer.blocks).toEqual(Buffer.concat(binary.map((datatype) => samples[datatype].raw)));
    for (const [index, datatype] of datatypes.entries()) {
      const { raw, given, printed = given } = samples[datatype];
      expect(gateway.admitted[0]?.inputs[index]).toMatchObject({ name: `INPUT${index}`, datatype, data: raw });
      const said = binary.includes(datatype)
        ? `"parameters":{"binary_data_size":${raw.length}}`
        : `"data":[${printed}]`;
      expect(answer.json).toContain(
        `{"name":"OUTPUT${index}","datatype":"${datatype}","shape":[${samples[datatype].count}],${said}}`,
      );
    }
  });
});

describe("the request", () => {
  it("reaches infer in the model's order, with all that it says", async () => {
    await post(
      "/v2/models/two/versions/1/infer",
      {
        ...twoInputs,
        id: "r",
        model_name: "ignored",
        parameters: { timeout: 1500, priority: 0, a: "x", b: 2, c: 1.5, d: false },
      },
      { "idempotency-key": "k 1" },
    );
    expect(gateway.admitted[0]).toEqual({
      client: expect.objectContaining({ hasLeft: false }) as unknown,
      model: expect.objectContaining({ name: "two" }) as unknown,
      tenant: "default",
      sequence: undefined,
      inputs: [
        { name: "INPUT0", datatype: "INT32", shape: [2], data: hex("01000000 02000000") },
        { name: "INPUT1", datatype: "FP32", shape: [1], data: hex("0000c03f") },
      ],
      outputs: ["OUTPUT0", "OUTPUT1"],
      parameters: { a: "x", b: 2, c: 1.5, d: false },
      idempotencyKey: "k 1",
      deadlineMs: 2,
      under: expect.any(Function) as unknown,
    });
  });

  it.each([
    [{}, 60_000],
    [{ timeout: 0 }, 60_000],
    [{ timeout: 3_600_000_000 }, 3_600_000],
  ])("with %j waits at most %i ms", async (parameters, deadlineMs) => {
    await infer("two", { ...twoInputs, parameters });
    expect(gateway.admitted[0]?.deadlineMs).toBe(deadlineMs);
  });

  it("flattens nested data row-major", async () => {
    const data = [[1, [2]], [[3, [[4]]]]];
    await infer("echo-INT8", { inputs: [{ name: "INPUT0", datatype: "INT8", shape: [4], data }] });
    expect(gateway.admitted[0]?.inputs[0]?.data).toEqual(hex("01020304"));
  });

  it("may be empty in a variable dimension, without a byte of binary data", async () => {
    const answer = await infer("echo-INT8", {
      parameters: { binary_data_output: true },
      inputs: [{ name: "INPUT0", datatype: "INT8", shape: [0], parameters: { binary_data_size: 0 } }],
    });
    expect(answer.json).toContain(
      '"outputs":[{"name":"OUTPUT0","datatype":"INT8","shape":[0],"parameters":{"binary_data_size":0}}]',
    );
    expect(answer.headers).toMatchObject({ "content-type": "application/json" });
    expect(answer.headers).not.toHaveProperty("inference-header-content-length");
  });

  it("keeps __proto__ and constructor as plain parameters", async () => {
    await infer(
      "two",
      `{"parameters":{"__proto__":"x","constructor":"y"},"inputs":${JSON.stringify(twoInputs.inputs)}}`,
    );
    expect(Object.entries(gateway.admitted[0]?.parameters ?? {})).toEqual([
      ["__proto__", "x"],
      ["constructor", "y"],
    ]);
    expect(({} as { x?: string }).x).toBeUndefined();
  });

  it.each([
    ["/v2/models/versioned/infer", "10"],
    ["/v2/models/versioned/versions/2/infer", "2"],
  ])("to %s runs version %s", async (path, version) => {
    expect((await post(path, { inputs: [int32Input()] })).json).toContain(`"model_version":"${version}"`);
  });
});

describe("a sequence's request", () => {
  const step = async (model: string, parameters: string): Promise<unknown> => {
    const answer = await infer(
      model,
      `{"parameters":${parameters},"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1,1],"data":[1]}]}`,
    );
    expect(answer.status, answer.json).toBe(200);
    return gateway.admitted.at(-1)?.sequence;
  };

  it("keeps ids apart by kind, and exact to 64 bits", async () => {
    expect(await step("seq-any", '{"sequence_id":42,"sequence_start":true}')).toEqual({
      id: { kind: "uint64", value: 42n },
      start: true,
      end: false,
    });
    expect(await step("seq-any", '{"sequence_id":"42","sequence_end":true}')).toEqual({
      id: { kind: "string", value: "42" },
      start: false,
      end: true,
    });
    expect(await step("seq", '{"sequence_id":18446744073709551615}')).toMatchObject({ id: { value: 2n ** 64n - 1n } });
    expect(await step("seq", '{"sequence_id":1700000000000000001}')).toMatchObject({
      id: { value: 1700000000000000001n },
    });
    expect(await step("seq-string", `{"sequence_id":"${"ü".repeat(64)}"}`)).toMatchObject({
      id: { value: "ü".repeat(64) },
    });
  });

  it("is no sequence's where the model has none", async () => {
    await infer("two", { ...twoInputs, parameters: { sequence_id: 7, sequence_start: true } });
    expect(gateway.admitted[0]?.sequence).toBeUndefined();
  });
});
