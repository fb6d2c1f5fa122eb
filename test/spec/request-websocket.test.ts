/**
 * `/v2/requests/<id>/ws`: WebSockets, and gateways that stop while clients read streams, over a
 * gateway in this process with real brokers behind it.
 */
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { http2Offer, inferPath, int32Input, rawGet, rawPost, statusesIn } from "../fixtures/requests.js";
import { asEvents, recordAt, wholeStream } from "../fixtures/token-records.js";
import { exchange, rawExchange } from "../support/gateway/http.js";
import { listen, useRequestLab, type LabGateway } from "../support/streams/request-lab.js";
import { until } from "../support/until.js";

const lab = useRequestLab();

interface Socket {
  readonly client: WebSocket;
  readonly messages: string[];
  readonly closed: Promise<[code: number, reason: string]>;
}

function open(path: string, one: LabGateway = lab().gateway, options: object = {}): Promise<Socket | number> {
  return new Promise((resolve, reject) => {
    const client = new WebSocket(`ws://127.0.0.1:${one.port}${path}`, options);
    const messages: string[] = [];
    client.on("message", (data: Buffer, isBinary) => messages.push(isBinary ? "binary" : data.toString()));
    const closed = new Promise<[number, string]>((done) =>
      client.on("close", (code, reason) => done([code, reason.toString()])),
    );
    client.on("open", () => resolve({ client, messages, closed }));
    client.on("unexpected-response", (_, { statusCode }) => {
      resolve(statusCode ?? 0);
      client.terminate();
    });
    client.on("error", (error) => {
      if (client.readyState === WebSocket.CONNECTING) reject(error);
    });
  });
}

async function openSurely(path: string, one: LabGateway = lab().gateway, options: object = {}): Promise<Socket> {
  const socket = await open(path, one, options);
  if (typeof socket === "number") throw new Error(`refused with ${socket}`);
  return socket;
}

describe("a WebSocket", () => {
  it("carries the records as text, from where the client left off, and closes after the last", async () => {
    const { writer, path } = await lab().begin();
    const whole = wholeStream(30);
    const all = await openSurely(`${path}/ws`);
    await writer.write(...whole.slice(0, 10));
    await until(() => all.messages.length === 10);
    const rest = await openSurely(`${path}/ws?after=4`);
    await writer.write(...whole.slice(10));
    expect([await all.closed, all.messages]).toEqual([[1000, ""], whole]);
    expect([await rest.closed, rest.messages]).toEqual([[1000, ""], whole.slice(5)]);
  });

  it("is refused with a status before the upgrade", async () => {
    const { writer, path } = await lab().begin();
    await writer.write(recordAt(0));
    expect(
      await Promise.all([
        open(`${path}/ws?after=-1`),
        open(`${path}/ws?after=7`),
        open("/v2/requests/x.0.1.talker/ws"),
        open("/v2/requests/x.0.1.talker/ws?after=1"),
        open("/v2/health/live"),
        open("/nowhere"),
      ]),
    ).toEqual([400, 409, 404, 410, 200, 404]);
    expect((await exchange(`${lab().gateway.url}${path}/ws`, "", {}, "GET")).status).toBe(426);
    const wrong = `GET ${path}/ws HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n`;
    expect(await rawExchange(lab().gateway.port, wrong)).toMatch(/^HTTP\/1\.1 400 /);
  });

  it("is opened for no page but those that may, and for no host but ours", async () => {
    const { path } = await lab().begin();
    const own = `http://127.0.0.1:${lab().gateway.port}`;
    const by = (options: object) => open(`${path}/ws`, lab().gateway, options);
    expect(
      await Promise.all([
        by({ origin: "https://evil.example" }),
        by({ origin: "null" }),
        by({ origin: "http://127.0.0.1.evil.example" }),
        by({ headers: { "sec-fetch-site": "cross-site" } }),
        by({ headers: { host: "evil.example" }, origin: "http://evil.example" }),
      ]),
    ).toEqual([403, 403, 403, 403, 403]);
    const opened = await Promise.all([{}, { origin: own }, { origin: "http://localhost:3000" }].map(by));
    expect(opened.map((socket) => typeof socket)).toEqual(["object", "object", "object"]);
    for (const socket of opened) if (typeof socket === "object") socket.client.terminate();
    await until(() => lab().gateway.webSockets.size === 0);
  });

  it("may say little, and nothing binary or huge", async () => {
    const { writer, path } = await lab().begin();
    const talking = await openSurely(`${path}/ws`);
    talking.client.send("thank you");
    await writer.write(recordAt(0));
    await until(() => talking.messages.length === 1);
    const binary = await openSurely(`${path}/ws`);
    binary.client.send(Buffer.from("no"));
    expect((await binary.closed)[0]).toBe(1008);
    const long = await openSurely(`${path}/ws`);
    long.client.send("x".repeat(5_000));
    expect((await long.closed)[0]).toBe(1008);
    const huge = await openSurely(`${path}/ws`);
    huge.client.send("x".repeat(2 << 20));
    expect((await huge.closed)[0]).toBe(1009);
    // This frame is compressed without an agreement: a bomb is a protocol error.
    const bomb = await openSurely(`${path}/ws`);
    rawSocket(bomb).write(Buffer.from([0xc1, 0x80, 0, 0, 0, 0]));
    expect((await bomb.closed)[0]).toBe(1002);
    expect(talking.client.readyState).toBe(WebSocket.OPEN);
    talking.client.close();
  });

  it("is cut when its client answers no ping", async () => {
    const impatient = await lab().start(100);
    const { path } = await lab().begin();
    const silent = await openSurely(`${path}/ws`, impatient, { autoPong: false });
    const awake = await openSurely(`${path}/ws`, impatient);
    expect((await silent.closed)[0]).toBe(1006);
    expect(awake.client.readyState).toBe(WebSocket.OPEN);
    awake.client.close();
    await until(() => impatient.webSockets.size === 0);
  });

  it("that reads nothing holds back its own stream alone", async () => {
    const { writer, path } = await lab().begin();
    const stuck = await openSurely(`${path}/ws`);
    stuck.client.pause();
    const well = await openSurely(`${path}/ws`);
    const text = "x".repeat(32_000);
    const records = Array.from({ length: 200 }, (_, i) => recordAt(i, { choices: [{ index: 0, text, tokens: [1] }] }));
    for (const record of records) await writer.write(record);
    await until(() => well.messages.length === records.length);
    expect(stuck.messages).toEqual([]);
    stuck.client.resume();
    await until(() => stuck.messages.length === records.length);
    expect(stuck.messages).toEqual(records);
    for (const { client } of [stuck, well]) client.terminate();
  });

  function rawSocket({ client }: Socket): { write(bytes: Buffer): void } {
    return (client as unknown as { _socket: { write(bytes: Buffer): void } })._socket;
  }
});

describe("an offer to go on in another protocol", () => {
  it("is not taken, and the request answered all the same", async () => {
    const body = JSON.stringify({ inputs: [int32Input()] });
    const infer = rawPost(inferPath("adder"), body, ["Prefer: respond-async", ...http2Offer]);
    const next = rawGet("/v2/health/live", ["Connection: close"]);
    const replies = await rawExchange(lab().gateway.port, infer + next);
    expect(statusesIn(replies)).toEqual([202, 200]);
  });
});

describe("a gateway that stops", () => {
  it("lets streams be read through its linger, then sends their readers elsewhere at once", async () => {
    const stopping = await lab().start();
    const { writer, path } = await lab().begin();
    const reading = await listen(`${stopping.url}${path}/events`);
    const socket = await openSurely(`${path}/ws`, stopping);
    const whole = wholeStream(10);
    const closed = stopping.server.close(60_000, 300);
    await writer.write(...whole.slice(0, 4));
    await until(() => reading.text() === asEvents(whole.slice(0, 4)) && socket.messages.length === 4);
    expect(await reading.ended).toBe(`${asEvents(whole.slice(0, 4))}retry: 500\n\n`);
    expect((await socket.closed)[0]).toBe(1001);
    await closed;
    await writer.write(...whole.slice(4));
    const elsewhere = await listen(`${lab().gateway.url}${path}/events`, { "last-event-id": "3" });
    expect(await elsewhere.ended).toBe(asEvents(whole.slice(4), 4));
  });
});
