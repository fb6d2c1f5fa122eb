/** Limits of bodies: for each body, after inflation, and for all bodies together. */
import { createServer, request, type ClientRequest, type IncomingMessage } from "node:http";
import { once } from "node:events";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { connect, type AddressInfo } from "node:net";
import { deflateSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Bodies } from "../../../gateway/http/bodies.js";
import { defaultLimits } from "../../../gateway/formats/limits.js";
import { ParseThread } from "../../../gateway/formats/kserve/parse-thread.js";
import { receiveRequest } from "../../../gateway/doors/kserve-http/receive-request.js";
import { RequestReader } from "../../../gateway/formats/kserve/request-reader.js";
import { readRequest, type Reading } from "../../../gateway/formats/kserve/read-request.js";
import { root } from "../../support/fleet/root.js";
import { useGateway } from "../../support/gateway/test-gateway.js";
import { exchange, expectRefusal, inferBody } from "../../support/gateway/http.js";
import { statusesIn } from "../../fixtures/requests.js";
import { generatorModel, servedModel } from "../../fixtures/served-models.js";

// A thread can only start from a compiled file.
const built = pathToFileURL(join(root, "dist/gateway/formats/kserve/parse-thread.js")).href;
const { ParseThread: BuiltThread } = (await import(built)) as { ParseThread: typeof ParseThread };

const KiB = 1024;
const budget = 4096 * KiB;
const url = (gateway: { readonly url: string }, model = "echo-UINT8"): string =>
  `${gateway.url}/v2/models/${model}/infer`;
const tensor = (count: number): object => ({
  inputs: [{ name: "INPUT0", datatype: "UINT8", shape: [count], parameters: { binary_data_size: count } }],
});

const gateway = useGateway({ bodies: new Bodies(budget) });

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

describe("bodies that a client sends one behind the other", () => {
  const parseThread = new BuiltThread();
  afterAll(() => parseThread.close());
  const served = useGateway({ parseThread });

  it("are admitted in that order, however long each takes to be read", async () => {
    const path = "/v2/models/echo-INT32/infer";
    const bodyOf = (value: number, bytes: number) =>
      JSON.stringify({ inputs: [{ name: "INPUT0", datatype: "INT32", shape: [1], data: [value] }] }).padEnd(bytes);
    const post = (body: Buffer, target: string, more: readonly string[]) =>
      Buffer.concat([
        Buffer.from(
          [`POST ${target} HTTP/1.1`, "Host: h", ...more, `Content-Length: ${body.length}`, "", ""].join("\r\n"),
        ),
        body,
      ]);
    // By the parsing thread, inflated, parsed in its own turn, refused, flat JSON, and plain.
    const requests = Array.from({ length: 15 }, (_, i) => {
      if (i % 6 === 1) return post(gzipSync(bodyOf(i, 300 * KiB)), path, ["Content-Encoding: gzip"]);
      if (i % 6 === 3) return post(Buffer.from("{"), path, []);
      if (i % 6 === 4) return post(Buffer.from(JSON.stringify({ INPUT0: i })), path.replace("infer", "generate"), []);
      return post(Buffer.from(bodyOf(i, [300 * KiB, 0, 20 * KiB][i % 6] ?? 0)), path, []);
    });
    const socket = connect(Number(new URL(served.url).port), "127.0.0.1");
    let replies = "";
    socket.on("data", (piece: Buffer) => (replies += piece.toString("latin1")));
    socket.write(Buffer.concat(requests));
    const wanted = requests.flatMap((_, i) => (i % 6 === 3 ? [] : [i]));
    await vi.waitFor(() => expect(statusesIn(replies)).toHaveLength(requests.length), { timeout: 20_000 });
    socket.destroy();
    const values = served.admitted.map(({ inputs }) => inputs[0]?.data.readInt32LE());
    expect(values).toEqual(wanted);
  });
});

describe("the parsing thread", () => {
  const thread = new ParseThread();
  const asked = vi.spyOn(thread, "read").mockImplementation((body, reading) => {
    return Promise.resolve().then(() => readRequest(body, reading));
  });
  const parts = {
    bodies: new Bodies(256 * KiB * KiB),
    reader: new RequestReader(thread),
    judgeAgain: () => Promise.resolve(),
    tenant: "default",
    budget: undefined,
  };
  let reading: Reading;
  let settled: Promise<unknown> = Promise.resolve();
  const server = createServer((incoming: IncomingMessage, outgoing) => {
    const jsonBytes = reading.headerLength === undefined ? undefined : Number(reading.headerLength);
    const terms = { maxBytes: defaultLimits.binaryBytes, jsonBytes };
    settled = receiveRequest(parts, incoming, terms, reading).catch(() => undefined);
    void settled.then(() => outgoing.end());
  });
  beforeAll(() => once(server.listen(0, "127.0.0.1"), "listening"));
  afterAll(() => void server.close());

  /** @returns whether the gateway called the thread */
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
  ])("is asked by infer about %s: %s", async (_, isExpected, body, headerLength, of) => {
    expect(await isHandedOn(body, { path: "infer", headerLength, model: of, others: [] })).toBe(isExpected);
  });

  it.each([
    ["a generator's", false, generator],
    ["another model's", true, model],
  ])("is asked by generate about %s body: %s", async (_, isExpected, of) => {
    expect(await isHandedOn(spaces, { path: "generate", headerLength: undefined, model: of, others: [] })).toBe(
      isExpected,
    );
  });
});

describe("all bodies together", () => {
  const refusal = `request bodies together are larger than the limit of ${budget} bytes, try again later`;

  /** Sends a request with a body that lacks its last byte. */
  async function stalled(body: Buffer, headers: Record<string, string>): Promise<ClientRequest> {
    const sent = request(url(gateway), { method: "POST", headers: { ...headers, "content-length": body.length } });
    sent.write(body.subarray(0, -1));
    // The socket has drained: the gateway has read the body so far.
    await once(sent, "drain");
    return sent;
  }

  /**
   * Sends a body without its last byte, and the same body again until the gateway refuses the copy.
   * @returns the first request, which keeps its room, and the answer to the copy
   */
  async function fillBudget(body: Buffer, headers: Record<string, string>) {
    for (;;) {
      const first = await stalled(body, headers);
      const refused = new AbortController();
      // An earlier body may not have released its room yet, and then the gateway refuses this
      // request.
      first.once("response", ({ statusCode }) => void (statusCode === 503 && refused.abort()));
      // The first body may still be on its way; then the gateway read the copy in time.
      while (!refused.signal.aborted) {
        const second = await exchange(url(gateway), body, headers);
        if (second.status !== 200) return { first, second };
      }
    }
  }

  it("are refused beyond the budget, small ones never, and there is room again when one has been read", async () => {
    const { headers, body } = inferBody(tensor(3000 * KiB), Buffer.alloc(3000 * KiB));
    const { first, second } = await fillBudget(body, headers);
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
    const { first, second } = await fillBudget(body, headers);
    let { status } = second;
    expect(status).toBe(503);
    first.on("error", () => undefined).destroy();
    while (status === 503) ({ status } = await exchange(url(gateway), body, headers));
    expect(status).toBe(200);
  });
});
