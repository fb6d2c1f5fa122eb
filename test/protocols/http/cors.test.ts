/** Web pages use a running server, with the requests that browsers send. */
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { generators, useGateway } from "../../support/gateway/test-gateway.js";
import { exchange, rawExchange } from "../../support/gateway/http.js";
import { inferPath, int32Input, rawGet, rawPost, statusesIn, chatBody } from "../../fixtures/requests.js";

const APP = "https://app.example.com";
const EVIL = "https://evil.example";
const TENSOR = inferPath("tensor");
const tensorBody = JSON.stringify({ inputs: [int32Input()] });
const streamedChat = JSON.stringify({ ...chatBody, stream: true });

const gateway = useGateway({
  models: generators,
  server: { browsers: { hosts: ["api.example.com"], origins: ["loopback", APP] } },
});

const ask = (method: string, path: string, headers: Record<string, string> = {}, body = "") =>
  exchange(gateway.url + path, body, headers, method);

describe("a page whose name was made to resolve to the gateway", () => {
  const host = "evil.example:8000";
  const message = "host 'evil.example' is not allowed; BATON_ALLOWED_HOSTS names the hosts that are";

  it.each([
    ["GET", "/v2/fleet", ""],
    ["GET", "/v2/health/live", ""],
    ["POST", TENSOR, tensorBody],
    ["OPTIONS", "/v2/fleet", ""],
    ["GET", "/nowhere", ""],
  ])("is refused, and told the setting: %s %s", async (method, path, body) => {
    const { status, json, headers } = await ask(method, path, { host }, body);
    expect([status, JSON.parse(json)]).toEqual([403, { error: message, code: "forbidden" }]);
    expect(headers["x-request-id"]).toMatch(/./);
    expect(gateway.admitted).toEqual([]);
  });

  it("is refused in OpenAI's form on OpenAI's paths", async () => {
    const { status, json } = await ask("POST", "/v1/chat/completions", { host }, streamedChat);
    const error = { message, type: "invalid_request_error", param: null, code: "forbidden" };
    expect([status, JSON.parse(json)]).toEqual([403, { error }]);
    expect(gateway.streams).toEqual([]);
  });

  it("cannot hide behind a Host that is allowed", async () => {
    const target = "GET http://evil.example/v2/fleet HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    expect(await rawExchange(gateway.port, target)).toMatch(/^HTTP\/1\.1 403 /);
  });

  it("leaves the connection to the next request, also where its body was not read", async () => {
    const refused = rawPost(TENSOR, tensorBody).replace("Host: h", `Host: ${host}`);
    const next = rawGet("/v2/health/live", ["Connection: close"]);
    const replies = await rawExchange(gateway.port, refused + next);
    expect(statusesIn(replies)).toEqual([403, 200]);
  });
});

describe("a client that is no browser", () => {
  it.each(["localhost:8000", "gateway:8000", "gateway.models.svc.cluster.local", "api.example.com"])(
    "works as before, by the host %s",
    async (host) => {
      const { status, headers } = await ask("POST", TENSOR, { host }, tensorBody);
      expect(status).toBe(200);
      expect(Object.keys(headers).filter((name) => /^access-control|^vary$/.test(name))).toEqual([]);
      expect((await ask("OPTIONS", "/v2/fleet", { host })).status).toBe(405);
    },
  );
});

describe("a page of another site", () => {
  it.each<Record<string, string>>([
    { origin: EVIL },
    { origin: EVIL, "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "cross-site" },
    { origin: "null" },
  ])("changes nothing: %o", async (headers) => {
    for (const [path, body] of [
      [TENSOR, tensorBody],
      ["/v1/chat/completions", streamedChat],
      ["/v2/requests/r0.0.1.talk/detach", ""],
    ] as const) {
      const answer = await ask("POST", path, { "content-type": "text/plain", ...headers }, body);
      expect(answer.status).toBe(403);
      expect(answer.json).toContain("BATON_ALLOWED_ORIGINS");
    }
    expect((await ask("DELETE", "/v2/requests/r0.0.1.talk", headers)).status).toBe(403);
    expect([gateway.admitted, gateway.streams]).toEqual([[], []]);
  });

  it("reads nothing", async () => {
    const { status, headers } = await ask("GET", "/v2/fleet", { origin: EVIL, "sec-fetch-site": "cross-site" });
    expect(status).toBe(403);
    expect(headers["access-control-allow-origin"]).toBeUndefined();
  });

  it("is told so when its browser asks before", async () => {
    const asked = { origin: EVIL, "access-control-request-method": "POST" };
    const { status, headers, json } = await ask("OPTIONS", TENSOR, asked);
    expect([status, json]).toEqual([403, expect.stringContaining("BATON_ALLOWED_ORIGINS")]);
    expect(headers["access-control-allow-origin"]).toBeUndefined();
  });
});

describe("a page of an allowed origin", () => {
  const allowed = { "access-control-allow-origin": APP, vary: "Origin" };
  const exposing = {
    ...allowed,
    "access-control-expose-headers": expect.stringContaining("baton-request-id") as string,
  };

  it("is told what it may send", async () => {
    const { status, headers, json } = await ask("OPTIONS", TENSOR, {
      origin: APP,
      "access-control-request-method": "POST",
      "access-control-request-headers": "content-type,idempotency-key",
      "access-control-request-private-network": "true",
    });
    expect([status, json, headers["content-length"]]).toEqual([204, "", undefined]);
    expect(headers).toMatchObject({
      "access-control-allow-origin": APP,
      "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
      "access-control-allow-headers": "content-type,idempotency-key",
      "access-control-allow-private-network": "true",
      "access-control-max-age": "600",
      vary: expect.stringMatching(/^Origin\b/) as string,
    });
  });

  it.each([
    ["GET", "/v2/fleet", "", 200],
    ["POST", TENSOR, tensorBody, 200],
    ["POST", TENSOR, "{", 400],
    ["POST", "/v1/chat/completions", "{", 400],
    ["GET", "/v2/models/unknown", "", 404],
    ["GET", "/nowhere", "", 404],
    ["GET", TENSOR, "", 405],
    ["POST", "/v2/cudasharedmemory/unregister", "", 501],
    ["GET", "/v2/health/live", "", 200],
  ])("reads every answer: %s %s '%s' %i", async (method, path, body, status) => {
    const answer = await ask(method, path, { origin: APP, "sec-fetch-site": "cross-site" }, body);
    expect([answer.status, answer.headers]).toEqual([status, expect.objectContaining(exposing)]);
  });

  it.each([
    ["/v1/chat/completions", streamedChat],
    ["/v2/models/talk/generate_stream", JSON.stringify({ text_input: "hi" })],
  ])("reads streams by %s, too", async (path, body) => {
    const sent = request(gateway.url + path, { method: "POST", headers: { origin: "http://localhost:3000" } });
    sent.end(body);
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    expect(response.headers).toMatchObject({
      "content-type": expect.stringContaining("text/event-stream") as string,
      "access-control-allow-origin": "http://localhost:3000",
      vary: "Origin",
    });
    response.resume();
    await once(response, "end");
  });
});
