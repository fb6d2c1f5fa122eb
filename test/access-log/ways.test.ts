/** A line for each answer, in each way that the gateway gives it. */
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { stepBody } from "../edition/ask.js";
import { simpleBody } from "../jobs/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { lineOf, linesWith, logFolder, members, type Line } from "./lines.js";
import { exchange, send } from "./raw.js";

const path = join(logFolder(), "access.log");
const env = { BATON_ACCESS_LOG: path };
const served = useFleet({ models: ["accumulate", "simple", "tale-gpt"], direct: true, env });

type Asking = Omit<RequestInit, "headers"> & { readonly headers?: Readonly<Record<string, string>> };

/** Asks under an id, and gives the answer with its line. */
async function ask(id: string, target: string, { body, headers, ...more }: Asking = {}) {
  const answer = await fetch(served.url + target, {
    method: body === undefined ? "GET" : "POST",
    ...(body !== undefined && { body }),
    ...more,
    headers: { "x-request-id": id, "user-agent": "me", ...headers },
  });
  const text = await answer.text();
  return { text, headers: answer.headers, line: await lineOf(path, id) };
}

const infer = "/v2/models/simple/infer";
const simple = JSON.stringify(simpleBody(21));
const prompt = { model: "tale-gpt", prompt: "Once", max_tokens: 4, temperature: 0, seed: 1 };

/** The members that differ between two requests of a kind. */
const own = ["time", "id", "request", "ms", "first_ms", "queue_ms", "run_ms"] as const;
function common(line: Line | undefined): object {
  return Object.fromEntries(Object.entries(line ?? {}).filter(([name]) => !own.some((one) => one === name)));
}

describe("an inference", () => {
  it("that the gateway parses on the socket", async () => {
    const { text, line } = await ask("plain", infer, { body: simple });
    expect(Object.keys(line ?? {})).toEqual(members);
    expect(common(line)).toEqual({
      gateway: expect.stringMatching(/^gw-[0-9a-f]{16}$/),
      tenant: "default",
      client: "127.0.0.1",
      protocol: "kserve",
      method: "POST",
      route: "/v2/models/:model/infer",
      path: infer,
      model: "simple",
      version: "1",
      sequence: null,
      step: null,
      status: 200,
      code: null,
      replayed: false,
      bytes_in: simple.length,
      bytes_out: text.length,
      worker: expect.stringMatching(/^worker-1\.[0-9a-f]{12}$/),
      records: null,
      tokens_in: null,
      tokens_out: null,
      ended: "sent",
      trace: null,
      agent: "me",
    });
    expect(line?.request).toMatch(/\.simple$/);
    expect(new Date(String(line?.time)).toISOString()).toBe(line?.time);
    for (const name of ["ms", "first_ms", "queue_ms", "run_ms"] as const)
      expect(line?.[name]).toBeGreaterThanOrEqual(0);
  });

  it.each<[string, Asking, string]>([
    ["node's parser", { headers: { "content-encoding": "identity" } }, infer],
    ["the framework", {}, `${infer}?secret=1`],
  ])("that comes by %s has the same line", async (way, asking, target) => {
    const id = way.replaceAll(/\W/g, "");
    const { line } = await ask(id, target, { ...asking, body: simple });
    const plain = await lineOf(path, "plain");
    expect(common(line)).toEqual(common(plain));
  });

  it("of a sequence says sequence and step, and a repeated request says so", async () => {
    const begin = JSON.stringify(stepBody({ sequence: 7, value: 1, start: true }));
    const next = JSON.stringify(stepBody({ sequence: 7, value: 1 }));
    const target = "/v2/models/accumulate/versions/1/infer";
    const key = { "idempotency-key": "k" };
    await ask("begin", target, { body: begin });
    const first = await ask("first", target, { body: next, headers: key });
    const again = await ask("again", target, { body: next, headers: key });
    const step = { sequence: "7", step: 2, version: "1", route: "/v2/models/:model/versions/:version/infer" };
    expect(first.line).toMatchObject({ ...step, replayed: false });
    expect(again.line).toMatchObject({ ...step, replayed: true, request: first.line?.request });
  });

  it("that waits in the background", async () => {
    const { line, headers } = await ask("later", infer, { body: simple, headers: { prefer: "respond-async" } });
    expect(line).toMatchObject({ status: 202, request: headers.get("baton-request-id"), model: "simple" });
  });
});

describe("a generation", () => {
  const times = { queue_ms: expect.any(Number), run_ms: expect.any(Number) };
  const worker = expect.stringMatching(/^worker-1\.[0-9a-f]{12}$/);
  const counted = { model: "tale-gpt", tokens_in: expect.any(Number), tokens_out: 4, ended: "sent", worker, ...times };

  it.each<[string, string, object, string]>([
    ["of OpenAI in one piece", "/v1/completions", prompt, "openai"],
    ["of OpenAI as a stream", "/v1/completions", { ...prompt, stream: true }, "openai"],
    ["of Triton as a stream", "/v2/models/tale-gpt/generate_stream", { text_input: "Once", max_tokens: 4 }, "kserve"],
  ])("%s", async (way, target, body, protocol) => {
    const { line } = await ask(way.replaceAll(/\W/g, ""), target, { body: JSON.stringify(body) });
    expect(line).toMatchObject({ ...counted, protocol, status: 200, records: expect.any(Number) });
    expect(line?.bytes_out).toBeGreaterThan(0);
  });

  it("that events, a durable stream and a WebSocket read again", async () => {
    const { headers } = await ask("read", "/v1/completions", { body: JSON.stringify({ ...prompt, stream: true }) });
    const at = `/v2/requests/${headers.get("baton-request-id")}`;
    const { records, request } = (await lineOf(path, "read")) ?? {};
    const read = { records, request, tokens_out: 4, ended: "sent", protocol: "own" };
    expect((await ask("events", `${at}/events`)).line).toMatchObject({ ...read, route: "/v2/requests/:id/events" });
    expect((await ask("durable", `${at}/stream`)).line).toMatchObject({ ...read, status: 200 });
    const url = `${served.url.replace("http", "ws")}${at}/ws?after=`;
    const socket = new WebSocket(url.slice(0, -"?after=".length), { headers: { "x-request-id": "ws" } });
    let bytes = 0;
    socket.on("message", (message: Buffer) => (bytes += message.length));
    await once(socket, "close");
    const line = await lineOf(path, "ws");
    expect(line).toMatchObject({ ...read, status: 101, path: `${at}/ws` });
    expect(line?.bytes_out).toBeGreaterThan(bytes);
    const refused = new WebSocket(`${url}x`, { headers: { "x-request-id": "wrong" } });
    await once(refused, "error");
    expect(await lineOf(path, "wrong")).toMatchObject({ status: 400, code: "invalid_argument", ended: "sent" });
  });
});

describe("a refusal", () => {
  it.each<[string, string, Asking, object]>([
    ["of an unknown model", "/v2/models/none/infer", { body: simple }, { status: 404, code: "unknown_model" }],
    ["of an unknown path", "/v3", {}, { status: 404, code: "not_found", route: null, protocol: null }],
    ["of a method", "/v2/jobs", { method: "PUT" }, { status: 405, code: "method_not_allowed", route: "/v2/jobs" }],
    ["of a body", infer, { body: "{" }, { status: 400, code: "invalid_json", bytes_in: 1, model: "simple" }],
    ["of OpenAI's", "/v1/completions", { body: "{}" }, { status: 400, protocol: "openai" }],
    ["of a page", "/v2", { headers: { origin: "https://evil.example" } }, { status: 403, code: "forbidden" }],
    [
      "of a step",
      "/v2/models/accumulate/infer",
      { body: JSON.stringify(stepBody({ sequence: 9, value: 1 })) },
      {
        status: 400,
        code: "sequence_start_required",
        sequence: "9",
      },
    ],
  ])("%s", async (way, target, asking, said) => {
    const { line } = await ask(way.replaceAll(/\W/g, ""), target, asking);
    expect(line).toMatchObject({ ended: "sent", worker: null, ...said });
  });

  it.each<[string, string, object]>([
    ["bytes that are no request", "\x16\x03\x01 no HTTP\r\n\r\n", { method: null, path: null, status: 400 }],
    ["no Host", "GET /no-host HTTP/1.1\r\nconnection: close\r\n\r\n", { path: "/no-host", status: 400 }],
    ["a wrong Host", "GET /wrong-host HTTP/1.1\r\nhost: a b\r\nconnection: close\r\n\r\n", { path: "/wrong-host" }],
    [
      "a wrong expectation",
      "GET /expects HTTP/1.1\r\nhost: localhost\r\nexpect: all\r\nconnection: close\r\n\r\n",
      { path: "/expects", status: 417, code: null },
    ],
    [
      "a body that is malformed",
      "POST /v2/models/simple/infer HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
      { status: 400, path: infer },
    ],
  ])("of %s", async (_, bytes, said) => {
    const id = /x-request-id: (\S+)/.exec(await exchange(served.url, bytes))?.[1];
    const isIt = (line: Line) => (id === undefined ? line.path === "/expects" : line.id === id);
    const lines = await linesWith(path, isIt);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ code: "invalid_argument", client: "127.0.0.1", ended: "sent", ...said });
  });
});

describe("a client that leaves", () => {
  it("before its body has come", async () => {
    const head = "POST /v2/models/simple/infer HTTP/1.1\r\nhost: localhost\r\nte: x\r\nuser-agent: leaves\r\n";
    const socket = await send(served.url, `${head}content-length: 100\r\n\r\n{`);
    socket.resetAndDestroy();
    const [line] = await linesWith(path, ({ agent }) => agent === "leaves");
    expect(line).toMatchObject({ bytes_in: 1, ended: "cut", model: "simple" });
  });

  it("in the middle of a stream", async () => {
    const leaving = new AbortController();
    const body = JSON.stringify({ ...prompt, max_tokens: 400, ignore_eos: true, stream: true });
    const headers = { "x-request-id": "leaves" };
    const { signal } = leaving;
    const answer = await fetch(`${served.url}/v1/completions`, { method: "POST", body, headers, signal });
    await answer.body?.getReader().read();
    leaving.abort();
    expect(await lineOf(path, "leaves")).toMatchObject({ status: 200, ended: "cut", model: "tale-gpt" });
  });
});

it("pipelined requests have a line each", async () => {
  const request = (n: number) =>
    `POST ${infer} HTTP/1.1\r\nhost: localhost\r\nuser-agent: pipeline\r\nx-request-id: pipe${n}\r\n` +
    `content-length: ${simple.length}\r\n${n === 19 ? "connection: close\r\n" : ""}\r\n${simple}`;
  await exchange(served.url, Array.from({ length: 20 }, (_, n) => request(n)).join(""));
  const lines = await linesWith(path, ({ agent }) => agent === "pipeline", 20);
  expect(new Set(lines.map(({ id }) => id))).toEqual(new Set(Array.from({ length: 20 }, (_, n) => `pipe${n}`)));
  const plain = await lineOf(path, "plain");
  for (const line of lines) {
    expect(line).toMatchObject({ status: 200, ended: "sent", bytes_in: simple.length, bytes_out: plain?.bytes_out });
  }
});
