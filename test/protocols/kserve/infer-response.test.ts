/** How results travel: named and unnamed outputs, raw binary requests, compression. */
import { gzipSync, deflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { parseJson, type JsonObject } from "#shared/json/parse.js";
import { useGateway } from "../../support/gateway/test-gateway.js";
import { type Answer, exchange, inferBody, postInfer, type Body } from "../../support/gateway/http.js";
import { hex, twoInputs } from "../../fixtures/requests.js";

const gateway = useGateway();

const post = (path: string, body: Body, headers?: Record<string, string>): Promise<Answer> =>
  exchange(gateway.url + path, body, headers);

const infer = (model: string, json: object | string, ...blocks: Buffer[]): Promise<Answer> =>
  postInfer(gateway, model, json, ...blocks);

describe("the response", () => {
  it("has the id only if the request had one", async () => {
    expect((await infer("two", { ...twoInputs, id: 'a"b' })).json).toMatch(/^\{"id":"a\\"b","model_name":"two"/);
    expect((await infer("two", { ...twoInputs, id: "" })).json).toMatch(/^\{"model_name"/);
  });

  it("encodes named outputs by their own flag alone", async () => {
    const answer = await infer("two", {
      ...twoInputs,
      parameters: { binary_data_output: true },
      outputs: [{ name: "OUTPUT1", parameters: { binary_data: true } }, { name: "OUTPUT0" }],
    });
    const { outputs } = parseJson(Buffer.from(answer.json)) as { outputs: JsonObject[] };
    expect(outputs.map(({ name, parameters }) => [name, parameters !== undefined])).toEqual([
      ["OUTPUT0", false],
      ["OUTPUT1", true],
    ]);
    expect(answer.blocks).toEqual(hex("0000c03f"));
  });

  it("has only the outputs that were named", async () => {
    expect((await infer("two", { ...twoInputs, outputs: [{ name: "OUTPUT1" }] })).json).not.toContain("OUTPUT0");
    expect((await infer("two", { ...twoInputs, outputs: [] })).json).toContain("OUTPUT0");
  });

  it("is whole when large", async () => {
    const raw = Buffer.alloc(5_000_000, "baton");
    const answer = await infer(
      "echo-UINT8",
      {
        inputs: [
          { name: "INPUT0", datatype: "UINT8", shape: [raw.length], parameters: { binary_data_size: raw.length } },
        ],
        outputs: [{ name: "OUTPUT0", parameters: { binary_data: true } }],
      },
      raw,
    );
    expect(answer.blocks.equals(raw)).toBe(true);
  });
});

describe("a raw binary request", () => {
  const raw = (model: string, body: Buffer): Promise<Answer> =>
    post(`/v2/models/${model}/infer`, body, { "inference-header-content-length": "0" });

  it("takes its shape from the model and answers in bytes", async () => {
    const answer = await raw("echo-FP32", hex("0000c03f 0000803f"));
    expect(gateway.admitted[0]?.inputs[0]).toMatchObject({ name: "INPUT0", datatype: "FP32", shape: [2] });
    expect(answer.blocks).toEqual(hex("0000c03f 0000803f"));
  });

  it("gives a string its length", async () => {
    const answer = await raw("one-string", Buffer.from("hello"));
    expect(gateway.admitted[0]?.inputs[0]).toMatchObject({ shape: [1, 1], data: hex("05000000 68656c6c6f") });
    expect(answer.blocks).toEqual(hex("05000000 68656c6c6f"));
  });
});

describe("compression", () => {
  const big = {
    inputs: [{ name: "INPUT0", datatype: "UINT8", shape: [2000], data: Array.from({ length: 2000 }, () => 7) }],
  };

  it.each([
    ["gzip", gzipSync],
    ["deflate", deflateSync],
    ["deflate", gzipSync],
    ["identity", (bytes: Buffer) => bytes],
  ])("of a request by %s is undone, and its header length is of what was inside", async (encoding, pack) => {
    const { headers, body } = inferBody(
      { inputs: [{ name: "INPUT0", datatype: "INT8", shape: [3], parameters: { binary_data_size: 3 } }] },
      hex("010203"),
    );
    const answer = await post("/v2/models/echo-INT8/infer", pack(body), { ...headers, "content-encoding": encoding });
    expect(answer.json).toContain('"data":[1,2,3]');
  });

  it.each([
    [undefined, undefined],
    ["gzip", "gzip"],
    ["deflate", "deflate"],
    ["gzip, deflate", "gzip"],
    ["gzip;q=0.5, deflate", "deflate"],
    ["identity, gzip", undefined],
    ["gzip;q=0", undefined],
    ["br, *", undefined],
  ])("of a response to Accept-Encoding %s is %s", async (accept, encoding) => {
    const headers: Record<string, string> = accept === undefined ? {} : { "accept-encoding": accept };
    const answer = await post("/v2/models/echo-UINT8/infer", big, headers);
    expect(answer.headers["content-encoding"]).toBe(encoding);
    expect(answer.json).toContain('"data":[7,7');
  });

  it("leaves the header length to what is inside", async () => {
    const answer = await post(
      "/v2/models/echo-UINT8/infer",
      { ...big, parameters: { binary_data_output: true } },
      { "accept-encoding": "gzip" },
    );
    expect(answer.blocks).toEqual(Buffer.alloc(2000, 7));
  });
});
