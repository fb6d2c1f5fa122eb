/** A reader that resumes a stream leaves a trace of its own, with a link to the request's. */
import { afterAll, describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { slowDown } from "../support/streams/stored.js";
import { TraceReceiver } from "../support/traces/receiver.js";
import { clientsTrace, named, pathsOf } from "../support/traces/spans.js";
import { until } from "../support/until.js";

const receiver = await TraceReceiver.start();
afterAll(() => receiver.leave());

const CHAT = "POST /v1/chat/completions";

describe("a fleet with a receiver of traces and a generator", () => {
  const served = useFleet({
    models: ["gen-mha"],
    env: { BATON_TRACE_URL: receiver.url, BATON_TRACE_SAMPLE: "0" },
  });

  function chat(headers: Readonly<Record<string, string>>, tokens: number): Promise<Response> {
    const messages = [{ role: "user", content: "hello" }];
    const body = { model: "gen-mha", messages, max_tokens: tokens, ignore_eos: true, seed: 3, stream: true };
    return fetch(`${served.url}/v1/chat/completions`, { method: "POST", body: JSON.stringify(body), headers });
  }

  /** @returns the public id and the span of the admission */
  async function begun() {
    const { traceId, headers } = clientsTrace();
    const answer = await chat(headers, 8);
    await answer.text();
    const { spanId } = named(await receiver.whole(traceId, ["admit"]), "admit");
    return { id: answer.headers.get("baton-request-id") ?? "", link: { traceId, spanId } };
  }

  it.each([
    ["events", "/events?after=2", "GET /v2/requests/{id}/events"],
    ["a durable stream", "/stream?live=sse&offset=", "GET /v2/requests/{id}/stream"],
    ["a durable stream, in one read", "/stream?offset=", "GET /v2/requests/{id}/stream"],
    ["a durable stream, by a long poll", "/stream?live=long-poll&offset=", "GET /v2/requests/{id}/stream"],
  ])("traces a reader of %s that comes back", async (_, path, route) => {
    const { id, link } = await begun();
    const { traceId, spanId, headers } = clientsTrace();
    const url = `${served.url}/v2/requests/${id}`;
    const offset = path.endsWith("=") ? await offsetAfterFirst(`${url}/stream`) : "";
    const answer = await fetch(url + path + offset, { headers });
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('"final":true')]);
    const spans = await receiver.whole(traceId, [route, "relay"]);
    expect(pathsOf(spans)).toEqual([route, `${route} > relay`]);
    const server = named(spans, route);
    expect(server).toMatchObject({ parentSpanId: spanId, links: [link] });
    expect(answer.headers.get("traceresponse")).toBe(`00-${traceId}-${server.spanId}-01`);
    const common = { "baton.model": "gen-mha", "baton.request": id, "baton.tenant": "default" };
    expect(server.attributes).toMatchObject({ ...common, "http.request.method": "GET", "baton.protocol": "own" });
    const relay = named(spans, "relay");
    expect(relay.attributes).toMatchObject(common);
    // It has the time in which the gateway read the records, also if all were there.
    expect(relay.startAt).toBe(server.startAt);
    const from = relay.events[0]?.attributes["baton.index"];
    expect(from).toBeGreaterThan(0);
    expect(relay.events.map(({ name, attributes }) => [name, attributes["baton.index"]])).toEqual([
      ["resumed", from],
      ["first_record", from],
    ]);
  });

  it("links a reader to the request that has the stream already, and gets none of its records", async () => {
    const { id, link } = await begun();
    const url = `${served.url}/v2/requests/${id}/stream`;
    const first = await fetch(url);
    await first.text();
    const { traceId, headers } = clientsTrace();
    const known = { ...headers, "if-none-match": first.headers.get("etag") ?? "" };
    expect((await fetch(url, { headers: known })).status).toBe(304);
    const route = "GET /v2/requests/{id}/stream";
    const spans = await receiver.whole(traceId, [route, "relay"]);
    expect(named(spans, route)).toMatchObject({ links: [link] });
    expect(named(spans, "relay").events).toEqual([]);
  });

  it.each(["/events?after=2", "/stream"])("leaves no trace of a reader of %s that is not sampled", async (path) => {
    const { id } = await begun();
    const answer = await fetch(`${served.url}/v2/requests/${id}${path}`);
    expect([answer.status, answer.headers.get("traceresponse")]).toEqual([200, null]);
    await answer.text();
  });

  it("tells of records that NATS has lost, as an event", async () => {
    const { traceId, headers } = clientsTrace();
    const { fleet } = served;
    slowDown(fleet);
    const answer = await chat(headers, 200);
    const text = answer.text();
    fleet.lines.nats.blackHole("toClient");
    const id = answer.headers.get("baton-request-id") ?? "";
    await until(async () => (await status(id)) !== "running");
    fleet.lines.nats.heal();
    fleet.lines.workerRedis.heal();
    expect(await text).toContain("[DONE]");
    const { events } = named(await receiver.whole(traceId, [CHAT, "relay", "commit"]), "relay");
    expect(events.map(({ name }) => name)).toContain("gap_filled");
    expect(events.length).toBeLessThanOrEqual(32);
    for (const { attributes } of events) expect(attributes["baton.index"]).toEqual(expect.any(Number));
  });

  async function status(id: string): Promise<string> {
    const answer = await fetch(`${served.url}/v2/requests/${id}`);
    return ((await answer.json()) as { state: string }).state;
  }
});

/** An offset behind some records of the stream. */
async function offsetAfterFirst(url: string): Promise<string> {
  const answer = await fetch(url);
  const all = answer.headers.get("stream-next-offset") ?? "";
  await answer.text();
  return all.replace(/\d+$/, (end) => String(Number(end) - 2).padStart(end.length, "0"));
}
