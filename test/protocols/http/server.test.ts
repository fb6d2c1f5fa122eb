/**
 * The listening side on raw sockets: bytes that are not HTTP, limits on the head, slow senders, and
 * stopping.
 */
import { connect, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { TestGateway, useGateway } from "../../support/gateway/test-gateway.js";
import { exchange, rawExchange } from "../../support/gateway/http.js";
import { inferPath, int32Input, rawGet, statusesIn } from "../../fixtures/requests.js";

const gateway = useGateway();

const body = JSON.stringify({ inputs: [int32Input()] });
const path = inferPath("echo-INT32");
const post = (headers: string[], payload = ""): string =>
  [`POST ${path} HTTP/1.1`, "Host: h", ...headers, "", payload].join("\r\n");
const good = post([`Content-Length: ${body.length}`], body);

describe("bytes that are no HTTP", () => {
  const chunked = "Transfer-Encoding: chunked";
  it.each([
    ["a length and chunks", post(["Content-Length: 5", chunked], `0\r\n\r\n${good}`)],
    ["two lengths", post(["Content-Length: 5", "Content-Length: 6"], `hello${good}`)],
    ["a space before the colon", post(["Transfer-Encoding : chunked"], `0\r\n\r\n${good}`)],
    ["an unknown transfer encoding", post(["Transfer-Encoding: xchunked"], `0\r\n\r\n${good}`)],
    ["bare line feeds", `POST ${path} HTTP/1.1\nHost: h\nContent-Length: 0\n\n${good}`],
    ["NUL in a header", post(["X: a\u0000b"], good)],
    ["an oversized chunk size", post([chunked], `fffffffffffffffff\r\n${good}`)],
    ["no hexadecimal chunk size", post([chunked], `5x\r\nhello\r\n${good}`)],
    ["a negative length", post(["Content-Length: -1"], good)],
    ["TLS", Buffer.from("16030100a5010000a10303", "hex")],
    ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ])("are refused and the connection closed: %s", async (_, bytes) => {
    const reply = await rawExchange(gateway.port, bytes);
    expect(statusesIn(reply)).toEqual([400]);
    expect(reply).toMatch(/\r\nx-request-id: [0-9a-f-]{36}\r\n/);
    expect(reply).toContain('{"error":"malformed HTTP request","code":"invalid_argument"}');
    expect(gateway.admitted).toEqual([]);
    expect(gateway.logged.pop()?.line).toBe("connection refused: not acceptable as HTTP");
  });

  it("include a request without Host, or with an invalid one", async () => {
    expect(statusesIn(await rawExchange(gateway.port, "GET /v2 HTTP/1.1\r\n\r\n"))).toEqual([400]);
    const reply = await rawExchange(gateway.port, "GET /v2 HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n");
    expect(statusesIn(reply)).toEqual([400]);
    expect(reply).toMatch(/x-request-id: /i);
  });
});

describe("limits", () => {
  it("hold for the head", async () => {
    const large = await rawExchange(gateway.port, post([`X: ${"a".repeat(20_000)}`]));
    expect(statusesIn(large)).toEqual([431]);
    const fields = (count: number): string[] => Array.from({ length: count - 3 }, () => "a:");
    const last = "Connection: close";
    const many = await rawExchange(gateway.port, post([...fields(2001), "Content-Length: 0", last]));
    expect(statusesIn(many)).toEqual([431]);
    expect(many).toContain('{"error":"more than 2000 header fields","code":"invalid_argument"}');
    const enough = await rawExchange(gateway.port, post([...fields(2000), "Content-Length: 0", last]));
    expect(statusesIn(enough)).toEqual([400]);
    expect(enough).toContain("The document is empty");
  });

  it("hold for chunk extensions", async () => {
    const bytes = post(["Transfer-Encoding: chunked"], `1;${"a".repeat(100_000)}\r\nx\r\n0\r\n\r\n`);
    expect(statusesIn(await rawExchange(gateway.port, bytes))).toEqual([413]);
  });

  it("hold for the number of tiny chunks", async () => {
    const chunks = (count: number): string =>
      post(["Transfer-Encoding: chunked", "Connection: close"], `${"1\r\n \r\n".repeat(count)}0\r\n\r\n`);
    const many = await rawExchange(gateway.port, chunks(65_537));
    expect(statusesIn(many)).toEqual([413]);
    expect(many).toContain("request body has more than 65536 chunks of a few bytes");
    expect(await rawExchange(gateway.port, chunks(65_536))).toContain("The document is empty at 65536");
  });

  it("hold before a byte of the body is sent", async () => {
    const head = post(["Content-Length: 99999999999"]);
    const reply = await rawExchange(gateway.port, head, /payload_too_large"\}/);
    expect(statusesIn(reply)).toEqual([413]);
  });

  it("hold where nothing reads the body, whose bytes are no next request", async () => {
    const target = "/v2/none";
    const chunk = good.repeat(Math.ceil(70_000 / good.length));
    const size = Buffer.byteLength(chunk).toString(16);
    const head = (more: string) => `POST ${target} HTTP/1.1\r\nHost: h\r\n${more}\r\n\r\n`;
    const bodies = [
      head(`Content-Length: ${chunk.length}`) + chunk,
      `${head("Transfer-Encoding: chunked")}${`${size}\r\n${chunk}\r\n`.repeat(4)}0\r\n\r\n`,
    ];
    for (const bytes of bodies) {
      const replies = await rawExchange(gateway.port, bytes + rawGet("/v2/health/live", ["Connection: close"]));
      expect(statusesIn(replies)[0]).toBe(404);
      expect(
        statusesIn(replies)
          .slice(1)
          .filter((status) => status !== 200),
      ).toEqual([]);
      expect(gateway.admitted).toEqual([]);
    }
  });

  it("leave the connection to the next request", async () => {
    const refused = post(["Content-Length: 2"], "[]");
    const replies = await rawExchange(gateway.port, refused + good, /"outputs"/);
    expect(statusesIn(replies)).toEqual([400, 200]);
  });

  it("end a request whose body does not come in time, and no other", async () => {
    const own = await TestGateway.start({ server: { limits: { requestMs: 500, stallMs: 3_000 } } });
    try {
      own.answer = async ({ outputs, inputs }) => {
        await new Promise((resolve) => setTimeout(resolve, 1_500));
        const [tensor = expect.fail("there is an input")] = inputs;
        return { kind: "result", tensors: [{ ...tensor, name: outputs[0] ?? "" }], version: "1" };
      };
      const long = exchange(`${own.url}${path}`, body);
      const late = await rawExchange(own.port, post(["Content-Length: 1000"], "{"));
      expect(statusesIn(late)).toEqual([408]);
      expect(late).toContain('"code":"request_timeout"');
      expect((await long).status).toBe(200);
    } finally {
      await own.server.close(0);
    }
  });

  it("let others be served while a head comes slowly, and end it", async () => {
    const begun = Date.now();
    const slow = rawExchange(gateway.port, `POST ${path} HTTP/1.1\r\nHost: h\r\n`);
    expect((await exchange(`${gateway.url}${path}`, body)).status).toBe(200);
    const reply = await slow;
    expect(statusesIn(reply)).toEqual([408]);
    expect(reply).toContain('"code":"request_timeout"');
    expect(Date.now() - begun).toBeGreaterThan(9_000);
  });
});

it("answers others beside a thousand clients that send slowly", async () => {
  const halves = [`POST ${path} HTTP/1.1\r\nHost: h\r\n`, post(["Content-Length: 1000"], "{")];
  const slow = await Promise.all(
    Array.from(
      { length: 1_000 },
      (_, i) =>
        new Promise<Socket>((resolve, reject) => {
          const socket = connect(gateway.port, "127.0.0.1", () =>
            socket.write(halves[i % 2] ?? "", () => resolve(socket)),
          );
          socket.once("error", reject);
        }),
    ),
  );
  const answers = await Promise.all(Array.from({ length: 20 }, () => exchange(`${gateway.url}${path}`, body)));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  expect(slow.filter(({ destroyed }) => destroyed)).toEqual([]);
  for (const socket of slow) socket.destroy();
});

describe("a connection", () => {
  it("answers pipelined requests in order", async () => {
    let arrivals = 0;
    gateway.answer = async ({ outputs, inputs }) => {
      const place = arrivals++;
      await new Promise((resolve) => setTimeout(resolve, place === 0 ? 50 : 0));
      return { kind: "result", tensors: inputs.map((tensor) => ({ ...tensor, name: outputs[0] ?? "" })), version: "1" };
    };
    const numbered = (value: number): string => {
      const json = body.replace("[1]}", `[${value}]}`);
      return post([`Content-Length: ${json.length}`], json);
    };
    const count = 200;
    const requests = Array.from({ length: count }, (_, index) => numbered(index));
    const replies = await rawExchange(gateway.port, requests.join(""), new RegExp(String.raw`"data":\[${count - 1}\]`));
    expect([...replies.matchAll(/"data":\[(\d+)\]/g)].map(([, value]) => Number(value))).toEqual(
      Array.from({ length: count }, (_, index) => index),
    );
  });

  it("may name its target in full; nothing of a path is resolved or decoded", async () => {
    const get = (target: string): Promise<string> => rawExchange(gateway.port, rawGet(target, ["Connection: close"]));
    expect(statusesIn(await get("http://elsewhere/v2/health/live?x"))).toEqual([200]);
    expect(statusesIn(await get("http://elsewhere"))).toEqual([404]);
    expect(statusesIn(await get("/v2/x/../health/live"))).toEqual([404]);
    expect(statusesIn(await get("/v2/models/two/versions/9/../1"))).toEqual([404]);
    expect(statusesIn(await get("/v2/%68ealth/live"))).toEqual([404]);
    expect(statusesIn(await get("/v2\\health\\live"))).toEqual([400]);
  });

  it("that ends in the middle of a body is no request", async () => {
    const socket = connect(gateway.port, "127.0.0.1", () => socket.end(good.slice(0, -3)));
    await new Promise((resolve) => socket.resume().on("close", resolve));
    expect(gateway.admitted).toEqual([]);
    expect((await exchange(`${gateway.url}${path}`, body)).status).toBe(200);
  });
});

describe("closing", () => {
  const open = (
    port: number,
    bytes: string,
  ): Promise<{ socket: Socket; text: () => string; closed: Promise<unknown> }> =>
    new Promise((resolve) => {
      let text = "";
      const socket = connect(port, "127.0.0.1", () => {
        socket.write(bytes);
        resolve({ socket, text: () => text, closed });
      });
      socket.on("data", (piece) => (text += piece.toString("latin1"))).on("error", () => undefined);
      const closed = new Promise((resolve) => socket.on("close", resolve));
    });

  it("lets the request in flight finish, and closes idle connections at once", async () => {
    const closing = await TestGateway.start();
    let finish: (() => void) | undefined;
    closing.answer = () =>
      new Promise((resolve) => {
        finish = () => resolve({ kind: "error", code: "model_error", message: "done" });
      });
    const idle = await open(closing.port, rawGet("/v2"));
    const busy = await open(closing.port, good);
    await expect.poll(() => [idle.text() !== "", finish !== undefined]).toEqual([true, true]);
    const closed = closing.server.close(10_000);
    await idle.closed;
    await expect(rawExchange(closing.port, good)).rejects.toThrow("ECONNREFUSED");
    expect(busy.text()).toBe("");
    finish?.();
    await Promise.all([busy.closed, closed]);
    expect(busy.text()).toMatch(/^HTTP\/1\.1 500[^]*Connection: close[^]*"done"/i);
  });

  it("cuts what is not finished after the grace", async () => {
    const closing = await TestGateway.start();
    let isAsked = false;
    closing.answer = () => new Promise(() => (isAsked = true));
    const busy = await open(closing.port, good);
    await expect.poll(() => isAsked).toBe(true);
    await closing.server.close(100);
    await busy.closed;
    expect(busy.text()).toBe("");
  });
});
