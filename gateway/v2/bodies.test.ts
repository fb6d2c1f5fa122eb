/** What bodies may hold: each, when it is inflated, and all of them together. */
import { request, type ClientRequest } from "node:http";
import { once } from "node:events";
import { deflateSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  exchange,
  expectRefusal,
  inferBody,
  startEchoGateway,
  type EchoGateway,
} from "../../test/setup/echo-gateway.js";
import { Bodies } from "./bodies.js";

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
