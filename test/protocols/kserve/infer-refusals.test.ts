/**
 * Refusals around the infer body: sizes, encodings, names, keys, and requests that `infer` itself
 * refuses.
 */
import { deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { errorKinds, InferenceError, type ErrorCode } from "#shared/errors.js";
import { defaultLimits } from "../../../gateway/formats/limits.js";
import { useGateway } from "../../support/gateway/test-gateway.js";
import { type Answer, exchange, expectRefusal, postInfer, type Body } from "../../support/gateway/http.js";
import { int32Input, withInput } from "../../fixtures/requests.js";

const limits = { ...defaultLimits, jsonBytes: 100_000, binaryBytes: 200_000 };
const gateway = useGateway({ limits });

const post = (path: string, body: Body, headers?: Record<string, string>): Promise<Answer> =>
  exchange(gateway.url + path, body, headers);

const infer = (model: string, json: object | string, ...blocks: Buffer[]): Promise<Answer> =>
  postInfer(gateway, model, json, ...blocks);

const input = int32Input();
const missing = (name: string): string =>
  `Unable to parse '${name}': attempt to access non-existing object member '${name}'`;

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
    const data = Buffer.from("01000000ff", "hex");
    gateway.answer = () =>
      Promise.resolve({
        kind: "result",
        tensors: [{ name: "OUTPUT0", datatype: "BYTES", shape: [1], data }],
        version: "1",
      });
    const text =
      "sending BYTES data that is not UTF-8 via JSON is not supported. Please use the binary data format for output OUTPUT0";
    expectRefusal(await infer("echo-BYTES", withInput({ datatype: "BYTES", data: ["a"] })), "invalid_argument", text);
  });
});
