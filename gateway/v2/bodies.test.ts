/** What bodies may hold: each, when it is inflated, and all of them together. */
import { createServer, request, type ClientRequest, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { deflateSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import {
  exchange,
  expectRefusal,
  inferBody,
  servedModel,
  startEchoGateway,
  type EchoGateway,
} from "../../test/setup/echo-gateway.js";
import { generatorModel } from "../../test/setup/recorded-gateway.js";
import { Bodies } from "./bodies.js";
import { Gathered } from "./gathered.js";
import { defaultLimits } from "./limits.js";
import { ParseThread } from "./parse-thread.js";
import { readRequest, type Reading } from "./read-request.js";

const KiB = 1024;
const budget = 4096 * KiB;
const url = (gateway: EchoGateway, model = "echo-UINT8"): string => `${gateway.url}/v2/models/${model}/infer`;
const tensor = (count: number): object => ({
  inputs: [{ name: "INPUT0", datatype: "UINT8", shape: [count], parameters: { binary_data_size: count } }],
});

let gateway: EchoGateway;
beforeAll(async () => {
  gateway = await startEchoGateway({ bodies: new Bodies(budget) });
});
afterAll(() => gateway.server.close(0));

describe("a compressed body", () => {
  const zeros = (count: number): string =>
    `{"inputs":[{"name":"INPUT0","datatype":"UINT8","shape":[${count}],"data":[${"0,".repeat(count - 1)}0]}]}`;
  const text = "request JSON is larger than 1048576 bytes and than 200 times its compressed length";

  it.each([
    ["gzip", gzipSync],
    ["deflate", deflateSync],
  ])("of JSON may expand by any ratio to a megabyte, and 200-fold beyond: %s", async (encoding, compressed) => {
    const headers = { "content-encoding": encoding };
    expect((await exchange(url(gateway), compressed(zeros(500_000)), headers)).status).toBe(200);
    expectRefusal(await exchange(url(gateway), compressed(zeros(600_000)), headers), "payload_too_large", text);
    const stored = compressed(zeros(600_000), { level: 0 });
    expect((await exchange(url(gateway), stored, headers)).status).toBe(200);
  });

  it("of tensors' bytes may expand to the limit of binary bodies, but not the JSON before them", async () => {
    const { headers, body } = inferBody(tensor(3000 * KiB), Buffer.alloc(3000 * KiB));
    const encoded = { ...headers, "content-encoding": "gzip" };
    const answer = await exchange(url(gateway), gzipSync(body), { ...encoded, "accept-encoding": "gzip" });
    expect(answer.status).toBe(200);
    const all = { ...encoded, "inference-header-content-length": String(body.length) };
    expectRefusal(await exchange(url(gateway), gzipSync(body), all), "payload_too_large", text);
  });
});

describe("a body in pieces", () => {
  it("is put together, of small and large ones", () => {
    const sizes = [0, 1, 511, 512, 700_000, 3, 400_000, 2_000_000, 1];
    for (const first of sizes) {
      const pieces = [first, ...sizes].map((size, index) => Buffer.alloc(size, index + 1));
      const whole = Buffer.concat(pieces);
      for (const expected of [whole.length, 256 * KiB * KiB]) {
        const gathered = new Gathered(expected);
        for (const piece of pieces) gathered.add(piece);
        expect([gathered.length, gathered.bytes().equals(whole)]).toEqual([whole.length, true]);
      }
    }
  });

  it("holds no piece of a few bytes, each of which would take hundreds", () => {
    const gathered = new Gathered(budget);
    const piece = Buffer.from("a");
    for (let count = 0; count < 65_536; count++) gathered.add(piece);
    piece.fill("b");
    expect(gathered.bytes().toString()).toBe("a".repeat(65_536));
    expect(gathered.bytes().buffer.byteLength).toBeLessThanOrEqual(2 * 65_536);
  });
});

describe("what goes to the parsing thread", () => {
  const thread = new ParseThread();
  const asked = vi.spyOn(thread, "read").mockImplementation((body, reading) => {
    return Promise.resolve().then(() => readRequest(body, reading));
  });
  const bodies = new Bodies(256 * KiB * KiB, thread);
  let reading: Reading;
  let settled: Promise<unknown> = Promise.resolve();
  const server = createServer((incoming: IncomingMessage, outgoing) => {
    const jsonBytes = reading.headerLength === undefined ? undefined : Number(reading.headerLength);
    const terms = { maxBytes: defaultLimits.binaryBytes, jsonBytes };
    settled = bodies.readRequest(incoming, terms, reading).catch(() => undefined);
    void settled.then(() => outgoing.end());
  });
  beforeAll(() => once(server.listen(0, "127.0.0.1"), "listening"));
  afterAll(() => void server.close());

  /** Whether the thread was asked. */
  async function isHandedOn(body: Buffer, given: Omit<Reading, "limits">): Promise<boolean> {
    asked.mockClear();
    reading = { ...given, limits: defaultLimits };
    await exchange(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, body);
    await settled;
    return asked.mock.calls.length > 0;
  }

  const model = servedModel("echo");
  const strings = servedModel("strings", { inputs: [{ name: "INPUT0", datatype: "BYTES", dims: [-1] }] });
  const generator = generatorModel("talk");
  const spaces = Buffer.alloc(200 * KiB, " ");

  it.each([
    ["long JSON", true, spaces, undefined, model],
    ["short JSON", false, spaces.subarray(0, 100 * KiB), undefined, model],
    ["a tensor's bytes", false, spaces, "100", model],
    ["the bytes of strings, each of which is checked", true, spaces, "100", strings],
    ["a few bytes of strings", false, spaces.subarray(0, 100 * KiB), "100", strings],
    ["a body that is shorter than its head says", false, Buffer.from("{}"), "200000", model],
    ["a generator's tensors as JSON", true, spaces, undefined, generator],
    ["a generator's text as bytes", false, spaces, "100", generator],
  ])("by infer: %s: %s", async (_, isExpected, body, headerLength, of) => {
    expect(await isHandedOn(body, { path: "infer", headerLength, model: of })).toBe(isExpected);
  });

  it.each([
    ["a generator's", false, generator],
    ["another model's", true, model],
  ])("by generate: %s: %s", async (_, isExpected, of) => {
    expect(await isHandedOn(spaces, { path: "generate", headerLength: undefined, model: of })).toBe(isExpected);
  });
});

describe("all bodies together", () => {
  const refusal = `request bodies together are larger than the limit of ${budget} bytes, try again later`;

  /** A request whose body has come but for its last byte. */
  async function stalled(body: Buffer, headers: Record<string, string>): Promise<ClientRequest> {
    const sent = request(url(gateway), { method: "POST", headers: { ...headers, "content-length": body.length } });
    sent.write(body.subarray(0, -1));
    // An answer to somebody who sends later says that the gateway has read this far.
    await once(sent, "drain");
    return sent;
  }

  it("are refused beyond the budget, small ones never, and there is room again when one has been read", async () => {
    const { headers, body } = inferBody(tensor(3000 * KiB), Buffer.alloc(3000 * KiB));
    const first = await stalled(body, headers);
    let second = await exchange(url(gateway), body, headers);
    // The first may still be on its way; then the second was read in time.
    while (second.status === 200) second = await exchange(url(gateway), body, headers);
    expectRefusal(second, "unavailable", refusal);
    const bomb = gzipSync(body);
    expectRefusal(
      await exchange(url(gateway), bomb, { ...headers, "content-encoding": "gzip" }),
      "unavailable",
      refusal,
    );
    const small = inferBody(tensor(KiB), Buffer.alloc(KiB));
    expect((await exchange(url(gateway), small.body, small.headers)).status).toBe(200);
    first.end(body.subarray(-1));
    expect(((await once(first, "response")) as [{ statusCode: number }])[0].statusCode).toBe(200);
    expect((await exchange(url(gateway), body, headers)).status).toBe(200);
  });

  it("have room again when a client went away in the middle", async () => {
    const { headers, body } = inferBody(tensor(3000 * KiB), Buffer.alloc(3000 * KiB));
    const first = await stalled(body, headers);
    let status = 200;
    while (status === 200) ({ status } = await exchange(url(gateway), body, headers));
    expect(status).toBe(503);
    first.on("error", () => undefined).destroy();
    while (status === 503) ({ status } = await exchange(url(gateway), body, headers));
    expect(status).toBe(200);
  });
});
