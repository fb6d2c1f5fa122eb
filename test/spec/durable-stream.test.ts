/**
 * `/v2/requests/<id>/stream` on the wire: the rules of the Durable Streams protocol for readers, at
 * a gateway in this process with real brokers behind it.
 */
import { request as httpRequest } from "node:http";
import { describe, expect, it } from "vitest";
import { outcomeKey } from "#shared/queue/keys.js";
import { encodeFrame } from "#shared/frame.js";
import { openGuard } from "../../gateway/http/guard.js";
import { offsetOf } from "../../gateway/api/streams/durable-form.js";
import { recordAt, wholeStream } from "../fixtures/token-records.js";
import { exchange } from "../support/gateway/http.js";
import { listen, useRequestLab, type Begun } from "../support/streams/request-lab.js";
import type { Writer } from "../support/streams/writer.js";
import { until } from "../support/until.js";

const lab = useRequestLab(openGuard("x-tenant"));
const own = { "x-tenant": "default" };

/**
 * The stream of a request that this gateway follows, and of a request that it does not know yet.
 */
const begin = async () => below(await lab().begin());
const foreign = async () => below(await lab().foreign());

function below({ id, writer, path }: Begun): Begun {
  return { id, writer, path: `${path}/stream` };
}

const ask = (path: string, headers: Record<string, string> = {}, method = "GET") =>
  exchange(lab().gateway.url + path, "", { ...own, ...headers }, method);

async function codeOf(path: string, headers: Record<string, string> = own): Promise<[number, string]> {
  const { status, json } = await exchange(lab().gateway.url + path, "", headers, "GET");
  return [status, (JSON.parse(json) as { code: string }).code];
}

const listenTo = (path: string, url = lab().gateway.url) => listen(url + path, own);

/** The events of a connection, without the cursors, which are times. */
const eventsIn = (text: string) => text.replace(/"streamCursor":"\d+",?/g, "").replace(/,}/g, "}");
const dataEvent = (...records: string[]) => `event: data\ndata: [${records.join()}]\n\n`;
const control = (index: number, ...flags: ("upToDate" | "streamClosed")[]) => {
  const members = [`"streamNextOffset":"${offsetOf(index)}"`, ...flags.map((flag) => `"${flag}":true`)];
  return `event: control\ndata: {${members.join()}}\n\n`;
};
const readersOf = ({ address }: Writer) => lab().relayed.relay.liveStream(address)?.hasReaders === true;

describe("catching up", () => {
  it("gives the records that are there, and says where to go on and how the stream stands", async () => {
    const { id, writer, path } = await begin();
    const empty = await ask(path);
    expect([empty.status, empty.json]).toEqual([200, "[]"]);
    expect(empty.headers).toMatchObject({ "stream-next-offset": offsetOf(0), "stream-up-to-date": "true" });
    const whole = wholeStream(4);
    await writer.write(...whole.slice(0, 2));
    const open = await ask(`${path}?offset=-1`);
    expect([open.status, open.json]).toEqual([200, `[${whole.slice(0, 2).join()}]`]);
    expect(open.headers).toMatchObject({
      "content-type": "application/json",
      "stream-next-offset": offsetOf(2),
      "stream-up-to-date": "true",
      "cache-control": "private, no-cache",
      "baton-request-id": id,
      "x-content-type-options": "nosniff",
      vary: "Accept",
    });
    expect(open.headers).not.toHaveProperty("stream-closed");
    await writer.write(...whole.slice(2));
    const rest = await ask(`${path}?offset=${offsetOf(2)}`);
    expect(rest.json).toBe(`[${whole.slice(2).join()}]`);
    expect(rest.headers).toMatchObject({
      "stream-next-offset": offsetOf(4),
      "stream-up-to-date": "true",
      "stream-closed": "true",
      "cache-control": "private, max-age=60, stale-while-revalidate=300",
    });
    const end = await ask(`${path}?offset=${offsetOf(4)}`);
    expect([end.status, end.json, end.headers["stream-closed"]]).toEqual([200, "[]", "true"]);
  });

  it("gives the text alone as text/plain, by the header or the parameter", async () => {
    const { writer, path } = await begin();
    await writer.write(...wholeStream(3));
    const byHeader = await ask(`${path}?offset=${offsetOf(1)}`, { accept: "text/plain" });
    const byParameter = await ask(`${path}?offset=${offsetOf(1)}&format=text`);
    for (const { headers, json } of [byHeader, byParameter]) {
      expect(json).toBe("t1 é");
      expect(headers).toMatchObject({
        "content-type": "text/plain; charset=utf-8",
        "stream-next-offset": offsetOf(3),
        "stream-closed": "true",
      });
    }
  });

  it("gives a long log in one answer, which is made while it is read", async () => {
    const { writer, path } = await foreign();
    const text = "x".repeat(1_000);
    const whole = wholeStream(201).map((record, i) =>
      i === 200 ? record : recordAt(i, { choices: [{ index: 0, text, tokens: [1] }] }),
    );
    await writer.write(...whole);
    const { headers, json } = await ask(path);
    expect(json).toBe(`[${whole.join()}]`);
    expect(headers).toMatchObject({
      "stream-next-offset": offsetOf(201),
      "stream-up-to-date": "true",
      "stream-closed": "true",
      "transfer-encoding": "chunked",
    });
    expect((await ask(path, { "if-none-match": headers["etag"] ?? "" })).status).toBe(304);
    expect((await ask(`${path}?format=text&offset=${offsetOf(1)}`)).json).toBe(text.repeat(199));
    const polled = await ask(`${path}?offset=-1&live=long-poll`);
    const count = (JSON.parse(polled.json) as unknown[]).length;
    expect(count).toBeLessThan(60);
    expect(polled.headers).toMatchObject({ "stream-next-offset": offsetOf(count) });
    expect(polled.headers).not.toHaveProperty("stream-up-to-date");
  });

  it("is answered 304 while nothing has changed, and in full once the stream is known to be closed", async () => {
    const { writer, path } = await begin();
    const whole = wholeStream(3);
    await writer.write(...whole.slice(0, 2));
    const { headers } = await ask(path);
    const known = { "if-none-match": headers["etag"] ?? "" };
    const same = await ask(path, known);
    expect([same.status, same.json, same.headers["etag"]]).toEqual([304, "", headers["etag"]]);
    expect(same.headers).toMatchObject({ "stream-next-offset": offsetOf(2) });
    expect((await ask(`${path}?format=text`, known)).status).toBe(200);
    await writer.give({ kind: "error", code: "cancelled", message: "x" });
    const closed = await ask(path, known);
    expect([closed.status, closed.headers["stream-closed"]]).toEqual([200, "true"]);
    // The log has no final record: the gateway makes the record from the outcome.
    expect(JSON.parse(closed.json)).toHaveLength(3);
    expect(closed.json).toContain('"final":true,"reason":"cancelled"');
    expect(closed.headers["stream-next-offset"]).toBe(offsetOf(3));
    expect((await ask(`${path}?offset=${offsetOf(3)}`)).headers["stream-closed"]).toBe("true");
  });

  it("may be read by the pages of other origins that may", async () => {
    const { path } = await begin();
    const { headers } = await ask(path, { origin: "http://localhost:3000" });
    expect(headers).toMatchObject({ "access-control-allow-origin": "http://localhost:3000", vary: "Origin, Accept" });
    for (const name of ["etag", "stream-next-offset", "stream-up-to-date", "stream-closed", "stream-cursor"]) {
      expect(headers["access-control-expose-headers"]).toContain(name);
    }
  });

  it("keeps a stream wanted that nobody reads otherwise", async () => {
    const { writer, path } = await begin();
    await writer.write(recordAt(0));
    await lab().streams.redis.hset(outcomeKey(writer.address), "wanted", "1");
    await ask(path);
    await until(async () => Number((await writer.fields())["wanted"]) > Date.now());
  });

  it("keeps a long stream wanted, of which an answer takes more than one reading", async () => {
    const { writer, path } = await foreign();
    const text = "x".repeat(1_000);
    const records = Array.from({ length: 100 }, (_, i) => recordAt(i, { choices: [{ index: 0, text, tokens: [1] }] }));
    await writer.append(...records);
    for (const query of ["", "?offset=-1&live=long-poll"]) {
      await lab().streams.redis.hset(outcomeKey(writer.address), "wanted", "1");
      await ask(path + query);
      await until(async () => Number((await writer.fields())["wanted"]) > Date.now());
    }
  });
});

describe("a long poll", () => {
  it("waits for records, and is not answered twice with the same", async () => {
    const { writer, path } = await begin();
    const whole = wholeStream(3);
    const waiting = ask(`${path}?offset=${offsetOf(0)}&live=long-poll`);
    await until(() => readersOf(writer));
    await writer.write(whole[0] ?? "");
    const first = await waiting;
    expect([first.status, first.json]).toEqual([200, `[${whole[0]}]`]);
    expect(first.headers).toMatchObject({
      "stream-next-offset": offsetOf(1),
      "stream-up-to-date": "true",
      "stream-cursor": expect.stringMatching(/^\d+$/) as string,
      "cache-control": "no-store",
    });
    await until(() => !readersOf(writer));
    const cursor = first.headers["stream-cursor"] ?? "";
    await writer.write(whole[1] ?? "");
    const next = ask(`${path}?offset=${offsetOf(2)}&live=long-poll&cursor=${cursor}`);
    await until(() => readersOf(writer));
    await writer.write(whole[2] ?? "");
    const second = await next;
    expect(second.json).toBe(`[${whole[2]}]`);
    expect(second.headers["stream-closed"]).toBe("true");
    expect(Number(second.headers["stream-cursor"])).toBeGreaterThan(Number(cursor));
  });

  it("gives at once what is there, and 204 at the end of a closed stream", async () => {
    const { writer, path } = await foreign();
    await writer.write(...wholeStream(2));
    const there = await ask(`${path}?offset=-1&live=long-poll`);
    expect([there.status, there.headers["stream-closed"]]).toEqual([200, "true"]);
    const end = await ask(`${path}?offset=${offsetOf(2)}&live=long-poll`);
    expect([end.status, end.json]).toEqual([204, ""]);
    expect(end.headers).toMatchObject({
      "stream-next-offset": offsetOf(2),
      "stream-up-to-date": "true",
      "stream-closed": "true",
    });
  });

  it("ends with 204 when the gateway stops, so that its client goes on elsewhere", async () => {
    const stopping = await lab().start();
    const { writer, path } = await begin();
    const waiting = exchange(`${stopping.url}${path}?offset=-1&live=long-poll`, "", own, "GET");
    await until(() => readersOf(writer));
    await stopping.server.close(60_000);
    const { status, headers } = await waiting;
    expect([status, headers["stream-next-offset"], headers["stream-up-to-date"]]).toEqual([204, offsetOf(0), "true"]);
    expect(headers).not.toHaveProperty("stream-closed");
  });

  it("keeps a stream wanted although it never has to wait", async () => {
    const { writer, path } = await begin();
    await writer.write(recordAt(0));
    await until(() => lab().relayed.relay.liveStream(writer.address)?.covers(1) === true);
    await lab().streams.redis.hset(outcomeKey(writer.address), "wanted", "1");
    const { headers } = await ask(`${path}?offset=-1&live=long-poll`);
    expect(headers).toMatchObject({ "stream-next-offset": offsetOf(1) });
    await until(async () => Number((await writer.fields())["wanted"]) > Date.now());
  });

  it("has a tag, by which an answer that is known is not given again", async () => {
    const { writer, path } = await begin();
    await writer.write(recordAt(0));
    const { headers } = await ask(`${path}?offset=-1&live=long-poll`);
    const again = await ask(`${path}?offset=-1&live=long-poll`, { "if-none-match": headers["etag"] ?? "" });
    expect([again.status, again.headers["etag"], again.json]).toEqual([304, headers["etag"], ""]);
  });

  it("waits for nothing where its client has left before", async () => {
    const { writer, path } = await foreign();
    await writer.append(recordAt(0));
    const { gatewayRedis } = lab().streams.fleet.lines;
    gatewayRedis.blackHole("toClient");
    const sent = httpRequest(`${lab().gateway.url}${path}?offset=${offsetOf(1)}&live=long-poll`, {
      headers: own,
      agent: false,
    });
    const left = new Promise((resolve) => sent.once("close", resolve));
    sent.on("error", () => undefined).end();
    await until(() => sent.socket?.bytesWritten !== 0);
    await codeOf(`/v2/requests/x/stream`); // by now the gateway has received the long poll, too
    sent.destroy();
    await left;
    await codeOf(`/v2/requests/x/stream`);
    gatewayRedis.heal();
    for (let reads = 0; reads < 5; reads++) await ask(path);
    expect(readersOf(writer)).toBe(false);
  });

  it("ends with its client", async () => {
    const { writer, path } = await begin();
    const sent = httpRequest(`${lab().gateway.url}${path}?offset=-1&live=long-poll`, { headers: own, agent: false });
    sent.on("error", () => undefined).end();
    await until(() => readersOf(writer));
    sent.destroy();
    await until(() => !readersOf(writer));
  });
});

describe("events", () => {
  it("are pieces of the stream, each with where to go on, and the last says that it is closed", async () => {
    const { writer, path } = await begin();
    const whole = wholeStream(3);
    const { head, text, ended } = await listenTo(`${path}?offset=-1&live=sse`);
    expect(head.headers).toMatchObject({ "content-type": "text/event-stream", "cache-control": "no-cache" });
    await until(() => eventsIn(text()) === control(0, "upToDate"));
    expect(text()).toMatch(/"streamCursor":"\d+"/);
    await writer.write(whole[0] ?? "");
    await until(() => text().includes(offsetOf(1)));
    await writer.write(whole[1] ?? "");
    await until(() => text().includes(offsetOf(2)));
    await writer.write(whole[2] ?? "");
    expect(eventsIn(await ended)).toBe(
      control(0, "upToDate") +
        dataEvent(whole[0] ?? "") +
        control(1, "upToDate") +
        dataEvent(whole[1] ?? "") +
        control(2, "upToDate") +
        dataEvent(whole[2] ?? "") +
        control(3, "upToDate", "streamClosed"),
    );
  });

  it("begin late, from any offset, and end at once where the stream is closed", async () => {
    const { writer, path } = await foreign();
    const whole = wholeStream(70);
    await writer.write(...whole);
    const late = await (await listenTo(`${path}?offset=${offsetOf(3)}&live=sse`)).ended;
    expect(eventsIn(late)).toBe(dataEvent(...whole.slice(3)) + control(70, "upToDate", "streamClosed"));
    const end = await (await listenTo(`${path}?offset=${offsetOf(70)}&live=sse`)).ended;
    expect(end).toBe(control(70, "upToDate", "streamClosed"));
    const words = await (await listenTo(`${path}?offset=${offsetOf(68)}&live=sse&format=text`)).ended;
    expect(words).toBe(`event: data\ndata: t68 é\n\n${control(70, "upToDate", "streamClosed")}`);
  });

  it("tell of a failure, and the next request tells it with a status", async () => {
    const { writer, path } = await begin();
    const { text, ended } = await listenTo(`${path}?offset=-1&live=sse`);
    await writer.write(recordAt(0));
    await until(() => text().includes(offsetOf(1)));
    await writer.destroy("log", "outcome");
    expect(await ended).toContain('event: error\ndata: {"error":"records of the stream are gone","code":"state_lost"}');
    expect(await codeOf(`${path}?offset=${offsetOf(1)}&live=sse`)).toEqual([410, "resume_window_passed"]);
  });

  it("end when the gateway stops", async () => {
    const stopping = await lab().start();
    const { path } = await begin();
    const { ended, text } = await listenTo(`${path}?offset=-1&live=sse`, stopping.url);
    await until(() => text() !== "");
    await stopping.server.close(60_000);
    expect(eventsIn(await ended)).toBe(`${control(0, "upToDate")}retry: 500\n\n`);
  });
});

describe("offset=now", () => {
  it("gives nothing of what was, and what comes", async () => {
    const { writer, path } = await begin();
    const whole = wholeStream(4);
    await writer.write(...whole.slice(0, 2));
    const once = await ask(`${path}?offset=now`);
    expect([once.status, once.json, once.headers["cache-control"]]).toEqual([200, "[]", "no-store"]);
    expect(once.headers).toMatchObject({ "stream-next-offset": offsetOf(2), "stream-up-to-date": "true" });
    expect(once.headers).not.toHaveProperty("etag");
    const waiting = ask(`${path}?offset=now&live=long-poll`);
    await until(() => readersOf(writer));
    const { text, ended } = await listenTo(`${path}?offset=now&live=sse`);
    await until(() => eventsIn(text()) === control(2, "upToDate"));
    await writer.write(whole[2] ?? "");
    const { status, json, headers } = await waiting;
    expect([status, json, headers["stream-next-offset"]]).toEqual([200, `[${whole[2]}]`, offsetOf(3)]);
    await until(() => text().includes(offsetOf(3)));
    await writer.write(whole[3] ?? "");
    expect(eventsIn(await ended)).toContain(dataEvent(whole[2] ?? "") + control(3, "upToDate"));
    expect(await ended).not.toContain(whole[1]);
  });

  it("is told of a closed stream at once, in every mode", async () => {
    const { writer, path } = await foreign();
    await writer.write(...wholeStream(2));
    const closed = { "stream-next-offset": offsetOf(2), "stream-up-to-date": "true", "stream-closed": "true" };
    const once = await ask(`${path}?offset=now&format=text`);
    expect([once.status, once.json, once.headers]).toEqual([200, "", expect.objectContaining(closed) as object]);
    const polled = await ask(`${path}?offset=now&live=long-poll`);
    expect([polled.status, polled.headers]).toEqual([204, expect.objectContaining(closed) as object]);
    expect(await (await listenTo(`${path}?offset=now&live=sse`)).ended).toBe(control(2, "upToDate", "streamClosed"));
  });
});

it("HEAD tells where the stream ends, and whether for good", async () => {
  const { writer, path } = await foreign();
  await writer.write(recordAt(0));
  const open = await ask(path, {}, "HEAD");
  expect([open.status, open.json]).toEqual([200, ""]);
  expect(open.headers).toMatchObject({
    "content-type": "application/json",
    "stream-next-offset": offsetOf(1),
    "cache-control": "no-store",
  });
  expect(open.headers).not.toHaveProperty("stream-closed");
  // The length would have to equal that of GET (RFC 9110, section 8.6), which HEAD does not
  // compute.
  expect(open.headers).not.toHaveProperty("content-length");
  await writer.give({ kind: "error", code: "expired", message: "x" });
  const closed = await ask(path, {}, "HEAD");
  expect(closed.headers).toMatchObject({ "stream-next-offset": offsetOf(2), "stream-closed": "true" });
  expect((await ask("/v2/requests/x.0.1.talker/stream", {}, "HEAD")).status).toBe(404);
});

describe("a stream is refused", () => {
  it("past its end, and where its log is gone", async () => {
    const { writer, path } = await foreign();
    await writer.write(recordAt(0));
    for (const live of ["", "&live=long-poll", "&live=sse"]) {
      expect(await codeOf(`${path}?offset=${offsetOf(2)}${live}`)).toEqual([409, "ahead_of_log"]);
    }
    expect(await codeOf(`${path}?offset=1`)).toEqual([400, "invalid_argument"]);
    await writer.give({ kind: "result", body: Buffer.from("x") });
    await writer.destroy("log");
    for (const query of ["", "?offset=now", `?offset=${offsetOf(1)}&live=sse`, "?offset=-1&live=long-poll"]) {
      expect(await codeOf(path + query)).toEqual([410, "resume_window_passed"]);
    }
    const guarded = { "cache-control": "no-store", "x-content-type-options": "nosniff" };
    const gone = await ask(path, {}, "HEAD");
    expect([gone.status, gone.headers]).toEqual([410, expect.objectContaining(guarded) as object]);
  });

  it("to those whose it is not, as if it were not there", async () => {
    const { writer, path } = await foreign();
    await writer.write(recordAt(0));
    for (const query of ["", "?offset=now", "?offset=-1&live=long-poll", "?offset=-1&live=sse"]) {
      expect(await codeOf(path + query, { "x-tenant": "other" })).toEqual([404, "unknown_request"]);
      expect(await codeOf(`/v2/requests/x.0.1.talker/stream${query}`)).toEqual([404, "unknown_request"]);
    }
    for (const id of ["x", "a.b.c.d", `${"x".repeat(65)}.0.1.talker`]) {
      expect(await codeOf(`/v2/requests/${id}/stream`)).toEqual([404, "unknown_request"]);
    }
    expect(await codeOf(path, {})).toEqual([403, "forbidden"]);
  });

  it("where the request gives tensors, of a model that nobody serves any more, too", async () => {
    const running = await lab().foreign("adder");
    const ended = await lab().foreign("unknown");
    await ended.writer.give({ kind: "result", body: encodeFrame({}, []) });
    for (const { id } of [running, ended]) {
      for (const query of ["", "?offset=now&live=sse", "?offset=-1&live=long-poll"]) {
        expect(await codeOf(`/v2/requests/${id}/stream${query}`)).toEqual([409, "not_a_stream"]);
      }
    }
    expect(await codeOf("/v2/requests/x.0.1.adder/stream")).toEqual([404, "unknown_request"]);
  });

  it("to who would write", async () => {
    const { path } = await begin();
    for (const method of ["PUT", "POST", "DELETE"]) {
      const { status, headers, json } = await ask(path, {}, method);
      expect([status, headers["allow"]]).toEqual([405, "GET, HEAD"]);
      expect(JSON.parse(json)).toEqual({
        error: "the stream of a request is written by the worker that runs it: it can only be read, by GET and HEAD",
        code: "method_not_allowed",
      });
    }
    expect((await ask(path, {}, "PATCH")).status).toBe(405);
  });
});
