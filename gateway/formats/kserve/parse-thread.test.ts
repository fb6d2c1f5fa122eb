import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { InferenceError } from "#shared/errors.js";
import { servedModel } from "../../../test/fixtures/served-models.js";
import { root } from "../../../test/support/fleet/root.js";
import { defaultLimits } from "../limits.js";
import type * as Host from "./parse-thread.js";
import { readRequest, type Reading } from "./read-request.js";
import { rawToJson } from "./tensors-json.js";

// A thread can only start from a compiled file.
const built = pathToFileURL(join(root, "dist/gateway/formats/kserve/parse-thread.js")).href;
const { ParseThread } = (await import(built)) as typeof Host;

let thread: Host.ParseThread | undefined;
afterEach(() => thread?.close());

const model = servedModel("echo");
const reading: Reading = { path: "infer", headerLength: undefined, others: [], model, limits: defaultLimits };
const bodyOf = (data: string, count: number): Buffer =>
  Buffer.from(`{"id":"7","inputs":[{"name":"INPUT0","datatype":"INT32","shape":[${count}],"data":${data}}]}`);
const wanted = (): void => undefined;

async function refusalOf(reply: Promise<unknown>): Promise<string> {
  const error: unknown = await reply.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return error instanceof Error ? `${"code" in error ? String(error.code) : ""} ${error.message}` : "read";
}

describe("the parsing thread", () => {
  it("reads as the gateway itself does, tensors of bytes and of JSON", async () => {
    thread = new ParseThread();
    const json = bodyOf("[[1],[-2,3]]", 3);
    const expected = readRequest(json, reading);
    expect(await thread.read(Buffer.from(json), reading, wanted)).toEqual(expected);

    const head = '{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[2],"parameters":{"binary_data_size":8}}]}';
    const binary = Buffer.concat([Buffer.from(head), Buffer.from([1, 0, 0, 0, 2, 0, 0, 0])]);
    const read = await thread.read(binary, { ...reading, headerLength: String(head.length) }, wanted);
    expect([...(read.valid.inputs[0]?.data ?? [])]).toEqual([1, 0, 0, 0, 2, 0, 0, 0]);
  });

  it("prints tensors as the gateway itself does, and refuses those that JSON cannot hold", async () => {
    thread = new ParseThread();
    const data = Buffer.from(new Float32Array([0.5, 2, -0, Infinity]).buffer);
    const tensor = { name: "OUTPUT0", datatype: "FP32", shape: [4], data } as const;
    expect((await thread.print(tensor)).toString()).toBe(rawToJson(tensor));
    expect(data.length).toBe(16);
    const bytes = { name: "OUTPUT0", datatype: "BYTES", shape: [1], data: Buffer.from([1, 0, 0, 0, 0xff]) } as const;
    expect(await refusalOf(thread.print(bytes))).toMatch(/^invalid_argument .* not UTF-8 via JSON/);
    expect((await thread.print({ ...tensor, datatype: "INT32" })).toString()).toMatch(/^\[\d+,\d+,-?\d+,\d+\]$/);
  });

  it("leaves memory alone that a body shares with others", async () => {
    thread = new ParseThread();
    const json = bodyOf("[5]", 1);
    const slab = new ArrayBuffer(64 * 1024);
    const body = Buffer.from(slab, 100, json.length);
    json.copy(body);
    expect((await thread.read(body, reading, wanted)).valid.inputs[0]?.data.readInt32LE()).toBe(5);
    expect([slab.byteLength, body.equals(json)]).toEqual([64 * 1024, true]);
  });

  it("takes memory along that is a long body's alone", async () => {
    thread = new ParseThread();
    const json = bodyOf(`[5${" ".repeat(100_000)}]`, 1);
    const body = Buffer.allocUnsafeSlow(2 * json.length).subarray(0, json.length);
    json.copy(body);
    expect((await thread.read(body, reading, wanted)).valid.inputs[0]?.data.readInt32LE()).toBe(5);
    expect(body.buffer.byteLength).toBe(0);
  });

  it("refuses with the same code and text", async () => {
    thread = new ParseThread();
    const refusal = await refusalOf(thread.read(bodyOf("[1]", 2), reading, wanted));
    expect(refusal).toBe("data_shape_mismatch Failed to parse 'data' field: shape does not match true shape");
  });

  it("that runs out of memory costs that body an error, and the next finds a new one", async () => {
    // The thread alone nearly fills a heap of 8 MB.
    thread = new ParseThread(12);
    const long = Buffer.from(
      `{"x":[${'"aaaaaaaaaaaaaaaaaaaaaaaa",'.repeat(149_000)}0],"y":"${"\\n".repeat(20_000_000)}"}`,
    );
    const replies = [
      thread.read(long, reading, wanted),
      thread.read(bodyOf("[5]", 1), reading, wanted).then(({ valid }) => valid.inputs[0]?.data.readInt32LE()),
    ];
    expect(await refusalOf(replies[0] as Promise<unknown>)).toBe(
      "payload_too_large the request body takes too much memory to parse",
    );
    expect(await replies[1]).toBe(5);
  });

  it("is not asked what nobody waits for any more", async () => {
    thread = new ParseThread();
    const gone = (): void => {
      throw new InferenceError("cancelled", "the client is gone");
    };
    expect(await refusalOf(thread.read(bodyOf("[1]", 1), reading, gone))).toBe("cancelled the client is gone");
  });

  it("refuses what it has when it is closed", async () => {
    thread = new ParseThread();
    const replies = [1, 2].map(() => refusalOf((thread as Host.ParseThread).read(bodyOf("[1]", 1), reading, wanted)));
    await thread.close();
    expect(await Promise.all(replies)).toEqual(Array(2).fill("unavailable the gateway is stopping"));
  });
});
