/**
 * `/v2/requests/<id>` over HTTP and WebSocket, at a gateway in this process with real brokers
 * behind it.
 */
import { randomUUID } from "node:crypto";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { encodeRequestId } from "#shared/queue/address.js";
import { logKey, outcomeKey } from "#shared/queue/keys.js";
import { encodeFrame } from "#shared/frame.js";
import { requestAddress } from "../../gateway/admission/request-id.js";
import { AdmissionBatcher } from "../../gateway/admission/batcher.js";
import { submitLater } from "../../gateway/admission/submit.js";
import { OutcomeSweeper } from "../../gateway/outcomes/sweep.js";
import type { OpenStream } from "../../gateway/stream/open-stream.js";
import { PendingRequests } from "../../gateway/outcomes/pending.js";
import { Requests } from "../../gateway/requests/requests.js";
import type { RunningServer } from "../../gateway/server.js";
import { WebSocketEndpoint } from "../../gateway/requests/websocket.js";
import { exchange, rawExchange } from "../support/gateway/http.js";
import { servedModel } from "../fixtures/served-models.js";
import { BROKERS_ALONE, StreamLab } from "../support/streams/lab.js";
import { PLACE, type RelayGateway } from "../support/streams/relay.js";
import { foreignRequest, Writer } from "../support/streams/writer.js";
import { asked, talker } from "../fixtures/generation.js";
import { lastRecord, recordAt, wholeStream } from "../fixtures/token-records.js";
import { heldBytes } from "../support/fleet/resources.js";
import { until } from "../support/until.js";
import { silentLog } from "../support/silent.js";
import { TestGateway } from "../support/gateway/test-gateway.js";
import { http2Offer, inferPath, int32Input, rawGet, rawPost, statusesIn, textInput } from "../fixtures/requests.js";

let lab: StreamLab;
let relayed: RelayGateway;
interface Gateway {
  url: string;
  port: number;
  server: RunningServer;
  webSockets: WebSocketEndpoint;
  failures: unknown[];
}
let gateway: Gateway;
const gateways: Gateway[] = [];

async function startGateway(pingMs = 60_000): Promise<Gateway> {
  const { redis, bus, relay, generate } = relayed;
  const requests = new Requests({ redis, bus, relay, outcomeTtlMs: 10_000 });
  const failures: unknown[] = [];
  const log = (fields: Readonly<Record<string, unknown>>) => void failures.push(fields);
  const limits = { queue: 1_000, waitingPerSequence: 64, liveSequences: 1_000 };
  const batcher = new AdmissionBatcher(redis, { gateway: `gw-${randomUUID()}`, limits });
  const queue = {
    redis,
    batcher,
    models: { pinned: () => undefined, heir: () => undefined },
    ...PLACE,
    idempotencyTtlMs: 60_000,
  };
  const pending = new PendingRequests({ redis, bus, gateway: "gw", secret: PLACE.secret, log: silentLog });
  const sweeper = new OutcomeSweeper(redis);
  const ttls = { outcomeTtlMs: 10_000, resultTtlMs: 50_000 };
  const submission = { queue, pending, sweeper, ...ttls, log: silentLog };
  const webSockets = new WebSocketEndpoint({ requests, log, pingMs });
  const { server, url, port } = await TestGateway.start({
    models: [talker, servedModel("adder")],
    inference: {
      infer: () => Promise.reject(new Error("not asked for")),
      inferLater: (request) => submitLater(submission, request),
      generate,
    },
    requests,
    log,
    server: { webSockets, log: () => undefined },
  });
  const one = { url, port, server, webSockets, failures };
  gateways.push(one);
  return one;
}

beforeAll(async () => {
  lab = await StreamLab.open(BROKERS_ALONE);
  relayed = await lab.addRelay();
  gateway = await startGateway();
});
afterAll(async () => {
  for (const { server, failures } of gateways) {
    await server.close(0);
    expect(failures).toEqual([]);
  }
  await lab.close();
});

async function begin(): Promise<{ stream: OpenStream; writer: Writer; path: string }> {
  const stream = await relayed.generate(asked());
  return { stream, writer: new Writer(lab, stream.id), path: `/v2/requests/${stream.id}` };
}

interface Events {
  readonly head: IncomingMessage;
  readonly text: () => string;
  readonly ended: Promise<string>;
  leave(): void;
}

function events(path: string, headers: Record<string, string> = {}, url = gateway.url): Promise<Events> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(`${url}${path}`, { headers, agent: false }, (head) => {
      let text = "";
      head.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      const ended = new Promise<string>((done, cut) => {
        head.on("end", () => done(text));
        head.on("error", cut);
      });
      ended.catch(() => undefined); // the test that awaits it is told
      resolve({ head, text: () => text, ended, leave: () => sent.destroy() });
    });
    sent.on("error", reject);
    sent.end();
  });
}

const asEvents = (records: readonly string[], from = 0): string =>
  records.map((record, i) => `id: ${from + i}\ndata: ${record}\n\n`).join("");

describe("events", () => {
  it("are the records, with their indexes as ids, from where the client left off", async () => {
    const { writer, path } = await begin();
    const whole = wholeStream(30);
    const all = await events(`${path}/events`);
    expect(all.head.statusCode).toBe(200);
    expect(all.head.headers).toMatchObject({
      "content-type": "text/event-stream",
      "baton-request-id": path.slice("/v2/requests/".length),
      "x-request-id": expect.stringMatching(/./) as string,
    });
    await writer.write(...whole.slice(0, 20));
    await until(() => all.text().length === asEvents(whole.slice(0, 20)).length);
    const rest = await events(`${path}/events?after=4`);
    const headerFirst = await events(`${path}/events?after=4`, { "last-event-id": "9" });
    await writer.write(...whole.slice(20));
    expect(await all.ended).toBe(asEvents(whole));
    expect(await rest.ended).toBe(asEvents(whole.slice(5), 5));
    expect(await headerFirst.ended).toBe(asEvents(whole.slice(10), 10));
    expect(await (await events(`${path}/events`, { "last-event-id": "29" })).ended).toBe("");
  });

  it.each(["-1", "", " ", "1.5", "1e3", "0x1", "abc", "NaN", "9999999999", "1, 2", `${2n ** 64n}`])(
    "after '%s' are refused",
    async (after) => {
      const { path } = await begin();
      const inAddress = await exchange(
        `${gateway.url}${path}/events?after=${encodeURIComponent(after)}`,
        "",
        {},
        "GET",
      );
      const inHeader = await exchange(`${gateway.url}${path}/events`, "", { "last-event-id": after }, "GET");
      for (const { status, json } of [inAddress, inHeader]) {
        expect([status, (JSON.parse(json) as { code: string }).code]).toEqual([400, "invalid_argument"]);
      }
    },
  );

  it("beyond the end, of an unknown request, or past their window are refused with a status", async () => {
    const { writer, path } = await begin();
    await writer.write(recordAt(0));
    const codeAt = async (target: string) => {
      const { status, json } = await exchange(`${gateway.url}${target}`, "", {}, "GET");
      return [status, (JSON.parse(json) as { code: string }).code];
    };
    expect(await codeAt(`${path}/events?after=1`)).toEqual([409, "ahead_of_log"]);
    expect(await codeAt("/v2/requests/x.0.1.talker/events")).toEqual([404, "unknown_request"]);
    expect(await codeAt("/v2/requests/x.0.1.talker/events?after=3")).toEqual([410, "resume_window_passed"]);
    for (const id of ["x", "x.0.1", "a.b.c.d", "x.0.1.{talker}", `${"x".repeat(65)}.0.1.talker`]) {
      expect(await codeAt(`/v2/requests/${id}/events`)).toEqual([404, "unknown_request"]);
      expect(await codeAt(`/v2/requests/${id}`)).toEqual([404, "unknown_request"]);
    }
  });

  it("answer HEAD, and other methods with 405", async () => {
    const { path } = await begin();
    const head = await exchange(`${gateway.url}${path}/events`, "", {}, "HEAD");
    expect([head.status, head.headers["content-type"], head.json]).toEqual([200, "text/event-stream", ""]);
    for (const [method, target] of [
      ["POST", path],
      ["PUT", `${path}/events`],
      ["GET", `${path}/detach`],
      ["POST", `${path}/ws`],
    ] as const) {
      expect((await exchange(`${gateway.url}${target}`, "", {}, method)).status).toBe(405);
    }
  });

  it("end with an error event when the stream fails after its head", async () => {
    const { writer, path } = await begin();
    const reading = await events(`${path}/events`);
    await writer.write(recordAt(0));
    await until(() => reading.text() !== "");
    await writer.destroy("log", "outcome");
    expect(await reading.ended).toBe(
      `${asEvents([recordAt(0)])}event: error\ndata: {"error":"records of the stream are gone","code":"state_lost"}\n\n`,
    );
  });

  it("stop being read when the client leaves", async () => {
    const { writer, path } = await begin();
    const reading = await events(`${path}/events`);
    await writer.write(recordAt(0));
    await until(() => reading.text() !== "");
    const live = relayed.relay.liveStream(writer.address);
    expect(live?.hasReaders).toBe(true);
    reading.leave();
    await until(() => live?.hasReaders === false);
  });

  it.each(["events", "stream?offset=-1&live=sse"])(
    "by %s of 200 clients that read nothing cost bounded memory",
    { timeout: 120_000 },
    async (reading) => {
      const { writer, path } = await begin();
      const text = "x".repeat(16_000);
      const sockets = await Promise.all(
        Array.from(
          { length: 200 },
          () =>
            new Promise<ReturnType<typeof connect>>((resolve) => {
              const socket = connect(gateway.port, "127.0.0.1", () => {
                socket.write(`GET ${path}/${reading} HTTP/1.1\r\nHost: h\r\n\r\n`, () => resolve(socket));
              });
            }),
        ),
      );
      await writer.write(recordAt(0));
      const before = heldBytes();
      for (let i = 1; i < 320; i++) await writer.write(recordAt(i, { choices: [{ index: 0, text, tokens: [1] }] }));
      const well = await events(`${path}/events?after=0`);
      await until(() => well.text().length > 5_000_000, 60_000);
      // The kernel takes up to 4 MB for each; the rest would be 240 MB. What has just been let go
      // of may still be counted.
      await until(() => heldBytes() - before < 64 << 20);
      well.leave();
      for (const socket of sockets) socket.destroy();
      await until(() => relayed.relay.liveStream(writer.address)?.hasReaders !== true);
    },
  );
});

describe("a request's state", () => {
  const stateOf = async (path: string) => {
    const { status, json } = await exchange(`${gateway.url}${path}`, "", {}, "GET");
    expect(status).toBe(200);
    return JSON.parse(json) as Record<string, unknown>;
  };

  it("goes from queued to completed, with the answer put together", async () => {
    const { stream, writer, path } = await begin();
    expect(await stateOf(path)).toEqual({
      id: stream.id,
      model_name: "talker",
      model_version: "1",
      subject: `baton.v1.default.talker.${stream.id.split(".")[0]}`,
      state: "queued",
      admitted_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
      began_at: null,
      ended_at: null,
    });
    await writer.append(recordAt(0));
    await lab.redis.hset(outcomeKey(writer.address), "began", String(Date.now()));
    expect(await stateOf(path)).toMatchObject({ state: "running", began_at: expect.any(String) as string });
    const other = { index: 1, text: "zwei", tokens: [3], finish_reason: "length" as const };
    await writer.append(recordAt(1, { choices: [other] }), lastRecord(2));
    await writer.give({ kind: "result", body: Buffer.from("whatever") });
    expect(await stateOf(path)).toMatchObject({
      state: "completed",
      ended_at: expect.any(String) as string,
      outcome: {
        choices: [
          { index: 0, text: "t0 é", finish_reason: "stop" },
          { index: 1, text: "zwei", finish_reason: "length" },
        ],
        usage: { prompt_tokens: 1, completion_tokens: 2 },
      },
    });
  });

  it("is completed as soon as the final record is there", async () => {
    const { writer, path } = await begin();
    await writer.append(recordAt(0), lastRecord(1));
    await lab.redis.hset(outcomeKey(writer.address), "began", String(Date.now()), "sealed", "1");
    expect(await stateOf(path)).toMatchObject({ state: "completed", outcome: { choices: [{ text: "t0 é" }] } });
  });

  it("is without an answer where the log is gone", async () => {
    const { writer, path } = await begin();
    await writer.write(...wholeStream(3));
    await writer.give({ kind: "result", body: Buffer.from(lastRecord(2)) });
    await writer.destroy("log");
    const state = await stateOf(path);
    expect([state["state"], state["outcome"]]).toEqual(["completed", undefined]);
  });

  it("has tensors as infer would have answered, and errors as they are", async () => {
    const done = await foreignRequest(lab, "adder");
    const data = Buffer.alloc(8);
    data.writeBigInt64LE(2n ** 53n + 1n);
    const tensor = { name: "SUM", datatype: "INT64", shape: [1], data } as const;
    await done.writer.give({ kind: "result", body: encodeFrame({}, [tensor]) });
    const { json } = await exchange(`${gateway.url}/v2/requests/${done.id}`, "", {}, "GET");
    expect(json).toContain('"state":"completed"');
    expect(json).not.toContain("subject");
    expect(json).toContain(
      '"outcome":{"model_name":"adder","model_version":"1","outputs":[{"name":"SUM","datatype":"INT64","shape":[1],"data":[9007199254740993]}]}',
    );
    for (const [code, state] of [
      ["model_error", "failed"],
      ["expired", "expired"],
      ["cancelled", "cancelled"],
    ] as const) {
      const { id, writer } = await foreignRequest(lab, "adder");
      await writer.give({ kind: "error", code, message: "why" });
      expect(await stateOf(`/v2/requests/${id}`)).toMatchObject({ state, outcome: { error: "why", code } });
    }
  });

  it("is unavailable while Redis is away", async () => {
    const { path } = await begin();
    lab.fleet.lines.gatewayRedis.blackHole("toServer", "toClient");
    try {
      const { status, headers } = await exchange(`${gateway.url}${path}`, "", {}, "GET");
      expect([status, headers["retry-after"]]).toEqual([503, "1"]);
    } finally {
      lab.fleet.lines.gatewayRedis.heal();
      await until(() => relayed.redis.status === "ready");
    }
  });
});

describe("cancelling", () => {
  const cancel = async (path: string) => {
    const { status, json } = await exchange(`${gateway.url}${path}`, "", {}, "DELETE");
    return { status, body: json === "" ? undefined : (JSON.parse(json) as unknown) };
  };

  it("ends a stream for all its readers, and says so as often as it is asked", async () => {
    const { writer, path } = await begin();
    const reading = await events(`${path}/events`);
    await writer.write(recordAt(0));
    expect([await cancel(path), await cancel(path)]).toEqual([{ status: 204 }, { status: 204 }]);
    expect(await reading.ended).toBe(
      asEvents([
        recordAt(0),
        `{"index":1,"choices":[],"final":true,"reason":"cancelled","error":{"code":"cancelled","message":"the request was cancelled"}}`,
      ]),
    );
  });

  it("does not shorten the time for which the request's key is remembered", async () => {
    const { writer, path } = await begin();
    expect(await cancel(path)).toEqual({ status: 204 });
    for (const key of [outcomeKey(writer.address), logKey(writer.address)]) {
      expect(await lab.redis.pttl(key)).toBeGreaterThan(10_000);
    }
  });

  it("comes too late for what has ended, and is refused for what was never there", async () => {
    const { writer, path } = await begin();
    await writer.write(...wholeStream(2));
    expect(await cancel(path)).toEqual({
      status: 409,
      body: { error: "the request has ended", code: "already_ended", state: "completed" },
    });
    expect(await cancel("/v2/requests/x.0.1.talker")).toMatchObject({ status: 404 });
  });

  it("takes requests of models that nobody knows any more, and gives no stream to one that had none", async () => {
    const { id, writer } = await foreignRequest(lab, "unknown");
    expect(await cancel(`/v2/requests/${id}`)).toEqual({ status: 204 });
    expect(await lab.redis.exists(logKey(writer.address))).toBe(0);
    const streaming = await foreignRequest(lab, "unknown");
    await streaming.writer.write(recordAt(0));
    expect(await cancel(`/v2/requests/${streaming.id}`)).toEqual({ status: 204 });
    expect(await lab.redis.llen(logKey(streaming.writer.address))).toBe(2);
  });
});

it("detaching lets a stream run on without readers", async () => {
  const { writer, path } = await begin();
  expect((await writer.fields())["wanted"]).toBeDefined();
  for (let i = 0; i < 2; i++) expect((await exchange(`${gateway.url}${path}/detach`)).status).toBe(204);
  expect((await writer.fields())["wanted"]).toBeUndefined();
  expect((await exchange(`${gateway.url}/v2/requests/x.0.1.talker/detach`)).status).toBe(404);
});

describe("a whole answer under an Idempotency-Key", () => {
  it.each([
    ["/v1/completions", { model: "talker", prompt: "once" }],
    ["/v2/models/talker/generate", { text_input: "once" }],
    ["/v2/models/talker/infer", { inputs: [textInput("once")] }],
  ])("by %s is made to its end though its client leaves, and its retry finds it", async (path, body) => {
    const headers = { "idempotency-key": path };
    const address = requestAddress(asked({ idempotencyKey: path }), PLACE);
    const writer = new Writer(lab, encodeRequestId(address));
    const sent = httpRequest(`${gateway.url}${path}`, { method: "POST", headers, agent: false });
    sent.on("error", () => undefined);
    sent.end(JSON.stringify(body));
    await until(() => relayed.relay.liveStream(address)?.hasReaders === true);
    sent.destroy();
    await until(() => relayed.relay.liveStream(address)?.hasReaders !== true);
    const facts = await writer.fields();
    expect([facts["wanted"], facts["kind"]]).toEqual([undefined, undefined]);
    await writer.write(...wholeStream(3));
    const { status, json } = await exchange(gateway.url + path, body, headers);
    expect([status, json]).toEqual([200, expect.stringContaining("t0 ét1 é")]);
  });
});

describe("Prefer: respond-async", () => {
  const inputs = [int32Input()];
  const post = (prefer: string, model = "adder", body: object = { inputs }) =>
    exchange(gateway.url + inferPath(model), body, { prefer });

  it.each(["respond-async", "wait=10, Respond-Async", "respond-async; x=1"])(
    "'%s' is answered at once",
    async (prefer) => {
      const { status, headers, json } = await post(prefer);
      const { id } = JSON.parse(json) as { id: string };
      expect([status, JSON.parse(json)]).toEqual([202, { id, state: "queued" }]);
      expect(headers).toMatchObject({ location: `/v2/requests/${id}`, "preference-applied": "respond-async" });
      const asked = await exchange(`${gateway.url}${headers["location"] ?? ""}`, "", {}, "GET");
      expect(JSON.parse(asked.json)).toMatchObject({ id, state: "queued", model_name: "adder" });
      await new Writer(lab, id).give({ kind: "error", code: "model_error", message: "x" });
      const after = await exchange(`${gateway.url}/v2/requests/${id}`, "", {}, "GET");
      expect(JSON.parse(after.json)).toMatchObject({ state: "failed", outcome: { code: "model_error" } });
    },
  );

  it("takes a generator's request too, which nobody needs to read", async () => {
    const text = [textInput("once")];
    const { status, json } = await post("respond-async", "talker", { inputs: text });
    expect(status).toBe(202);
    const writer = new Writer(lab, (JSON.parse(json) as { id: string }).id);
    expect((await writer.fields())["wanted"]).toBeUndefined();
  });

  it("is refused as any other request is", async () => {
    expect((await post("respond-async", "adder", { inputs: [] })).status).toBe(400);
    expect((await post("respond-async", "nobody")).status).toBe(404);
  });
});

interface Socket {
  readonly client: WebSocket;
  readonly messages: string[];
  readonly closed: Promise<[code: number, reason: string]>;
}

function open(path: string, one = gateway, options: object = {}): Promise<Socket | number> {
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

async function openSurely(path: string, one = gateway, options: object = {}): Promise<Socket> {
  const socket = await open(path, one, options);
  if (typeof socket === "number") throw new Error(`refused with ${socket}`);
  return socket;
}

describe("a WebSocket", () => {
  it("carries the records as text, from where the client left off, and closes after the last", async () => {
    const { writer, path } = await begin();
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
    const { writer, path } = await begin();
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
    expect((await exchange(`${gateway.url}${path}/ws`, "", {}, "GET")).status).toBe(426);
    const wrong = `GET ${path}/ws HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n`;
    expect(await rawExchange(gateway.port, wrong)).toMatch(/^HTTP\/1\.1 400 /);
  });

  it("is opened for no page but those that may, and for no host but ours", async () => {
    const { path } = await begin();
    const own = `http://127.0.0.1:${gateway.port}`;
    const by = (options: object) => open(`${path}/ws`, gateway, options);
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
    await until(() => gateway.webSockets.size === 0);
  });

  it("may say little, and nothing binary or huge", async () => {
    const { writer, path } = await begin();
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
    // This frame is compressed though that was not agreed on: a bomb is a protocol error.
    const bomb = await openSurely(`${path}/ws`);
    rawSocket(bomb).write(Buffer.from([0xc1, 0x80, 0, 0, 0, 0]));
    expect((await bomb.closed)[0]).toBe(1002);
    expect(talking.client.readyState).toBe(WebSocket.OPEN);
    talking.client.close();
  });

  it("is cut when its client answers no ping", async () => {
    const impatient = await startGateway(100);
    const { path } = await begin();
    const silent = await openSurely(`${path}/ws`, impatient, { autoPong: false });
    const awake = await openSurely(`${path}/ws`, impatient);
    expect((await silent.closed)[0]).toBe(1006);
    expect(awake.client.readyState).toBe(WebSocket.OPEN);
    awake.client.close();
    await until(() => impatient.webSockets.size === 0);
  });

  it("that reads nothing holds back its own stream alone", async () => {
    const { writer, path } = await begin();
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
    const replies = await rawExchange(gateway.port, infer + next);
    expect(statusesIn(replies)).toEqual([202, 200]);
  });
});

describe("a gateway that stops", () => {
  it("lets streams be read through its linger, then sends their readers elsewhere at once", async () => {
    const stopping = await startGateway();
    const { writer, path } = await begin();
    const reading = await events(`${path}/events`, {}, stopping.url);
    const socket = await openSurely(`${path}/ws`, stopping);
    const whole = wholeStream(10);
    const closed = stopping.server.close(60_000, 300);
    await writer.write(...whole.slice(0, 4));
    await until(() => reading.text() === asEvents(whole.slice(0, 4)) && socket.messages.length === 4);
    expect(await reading.ended).toBe(`${asEvents(whole.slice(0, 4))}retry: 500\n\n`);
    expect((await socket.closed)[0]).toBe(1001);
    await closed;
    await writer.write(...whole.slice(4));
    const elsewhere = await events(`${path}/events`, { "last-event-id": "3" });
    expect(await elsewhere.ended).toBe(asEvents(whole.slice(4), 4));
  });
});

describe("another tenant", () => {
  it("finds no request under an id that is not its own, and changes nothing by trying", async () => {
    const { redis, bus, relay } = relayed;
    const requests = new Requests({ redis, bus, relay, outcomeTtlMs: 10_000 });
    const { stream, writer } = await begin();
    const before = await writer.fields();
    const unknown = { code: "unknown_request" };
    await expect(requests.open("other", stream.id, 0)).rejects.toMatchObject(unknown);
    await expect(requests.status("other", stream.id)).rejects.toMatchObject(unknown);
    await expect(requests.cancel("other", stream.id)).rejects.toMatchObject(unknown);
    await expect(requests.detach("other", stream.id)).rejects.toMatchObject(unknown);
    expect(await writer.fields()).toEqual(before);
    expect((await requests.status(DEFAULT_TENANT, stream.id)).state).toBe("queued");
    await stream.cancel();
  });

  it("reads its own stream under the same key, though both are followed by one gateway", async () => {
    const own = await relayed.generate(asked({ idempotencyKey: "same" }));
    const foreign = await relayed.generate(asked({ idempotencyKey: "same", tenant: "other" }));
    const writer = new Writer(lab, own.id);
    const address = { ...writer.address, tenant: "other" };
    expect(relayed.relay.liveStream(writer.address)).toBeDefined();
    // The same public id under another tenant is another stream.
    expect(relayed.relay.liveStream(address)).toBeUndefined();
    expect(foreign.id).not.toBe(own.id);
    await Promise.all([own.cancel(), foreign.cancel()]);
  });
});
