/** A ticket reads one request, for a page that cannot send a key, and opens nothing else. */
import { beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { ask, type Answer } from "../jobs/ask.js";
import { recordsIn } from "../support/streams/event-source.js";
import { useKeyedFleet, type Key } from "./keyed.js";

const MODEL = "gen-mha";
const fleet = useKeyedFleet({ models: [MODEL], direct: true });
const { served, make } = fleet;

interface Ticket {
  readonly object: string;
  readonly ticket: string;
  readonly request: string;
  readonly expires_at: string;
}

let key: Key;
/** The ids of two requests that have ended. */
let read: string;
let other: string;

async function submit({ headers }: Key): Promise<string> {
  const { body } = await ask(`${served.url}/v2/models/${MODEL}/generate`, {
    body: { text_input: "a lap", max_tokens: 5 },
    headers: { ...headers, prefer: "respond-async" },
  });
  return body.id;
}

const issue = ({ headers }: Key, body: object): Promise<Answer> => ask(`${served.url}/v2/tickets`, { body, headers });
async function ticketFor(request: string, by = key, ttl = 60_000): Promise<string> {
  const { body, status, text } = await issue(by, { request, ttl });
  if (status !== 201) throw new Error(text);
  return (body as unknown as Ticket).ticket;
}

const get = async (path: string, init: RequestInit = {}): Promise<{ status: number; text: string }> => {
  const answer = await fetch(served.url + path, init);
  return { status: answer.status, text: await answer.text() };
};

/** @returns the protocol and the number of records of a WebSocket, or the status of its refusal */
const socket = (id: string, protocols: readonly string[], more: object = {}) =>
  new Promise<{ protocol: string; records: number } | number>((resolve, reject) => {
    const url = `${served.url.replace("http", "ws")}/v2/requests/${id}/ws`;
    const client = new WebSocket(url, [...protocols], more);
    let records = 0;
    client.on("message", () => (records += 1));
    client.on("close", () => resolve({ protocol: client.protocol, records }));
    client.on("unexpected-response", (_, answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    client.on("error", reject);
  });

beforeAll(async () => {
  key = await make({ scopes: ["infer", "read"] });
  [read, other] = await Promise.all([submit(key), submit(key)]);
  for (const id of [read, other]) await get(`/v2/requests/${id}/events`, { headers: key.headers });
});

describe("a ticket", () => {
  it("names its request and its end, and is in no cache", async () => {
    const { status, body, headers } = await issue(key, { request: read });
    const { expires_at: expiresAt, ...rest } = body as unknown as Ticket;
    expect([status, rest]).toEqual([
      201,
      { object: "ticket", request: read, ticket: expect.stringMatching(/^tk_[\w-]+\.[\w-]{43}$/) as string },
    ]);
    expect(Date.parse(expiresAt) - (await fleet.keys.now())).toBeLessThanOrEqual(30_000);
    expect(headers.get("cache-control")).toBe("no-store");
  });

  it("reads the status and the stream of its request in every form", async () => {
    const ticket = await ticketFor(read);
    const whole = await get(`/v2/requests/${read}/events`, { headers: key.headers });
    const at = (rest: string) => get(`/v2/requests/${read}${rest}ticket=${ticket}`);
    expect(JSON.parse((await at("?")).text)).toMatchObject({ id: read, state: "completed" });
    expect((await at("/events?")).text).toBe(whole.text);
    expect(JSON.parse((await at("/stream?offset=-1&")).text)).toEqual(recordsIn(whole.text));
    const opened = { protocol: "baton.v1", records: recordsIn(whole.text).length };
    expect(await socket(read, ["baton.v1", `baton.ticket.${ticket}`])).toEqual(opened);
    expect(await socket(read, [`baton.ticket.${ticket}`, "baton.v1"])).toEqual(opened);
  });

  it("opens no other request, no other path and no other method", async () => {
    const ticket = await ticketFor(read);
    for (const path of [`/v2/requests/${other}`, `/v2/requests/${other}/events`, `/v2/requests/${other}/stream`]) {
      expect(await get(`${path}?ticket=${ticket}`)).toMatchObject({ status: 401 });
    }
    expect(await socket(other, ["baton.v1", `baton.ticket.${ticket}`])).toBe(401);
    const elsewhere: [string, string][] = [
      ["GET", "/v2/jobs"],
      ["GET", "/v2/whoami"],
      ["POST", "/v2/tickets"],
      ["DELETE", `/v2/requests/${read}`],
      ["POST", `/v2/requests/${read}/detach`],
      ["POST", `/v2/requests/${read}/subscription`],
      ["POST", `/v2/models/${MODEL}/generate`],
    ];
    for (const [method, path] of elsewhere) {
      const { status, text } = await get(`${path}?ticket=${ticket}`, { method });
      expect([path, status, text]).toEqual([path, 401, expect.stringContaining("missing_api_key")]);
    }
    const asKey = { headers: { authorization: `Bearer ${ticket}` } };
    expect(await get(`/v2/requests/${read}`, asKey)).toMatchObject({ status: 401 });
  });

  it("beside a key is one credential too many", async () => {
    const { status, text } = await get(`/v2/requests/${read}?ticket=${await ticketFor(read)}`, {
      headers: key.headers,
    });
    expect([status, text]).toEqual([400, expect.stringContaining("more than one credential")]);
  });

  it("is good until its time is over", async () => {
    const ticket = await ticketFor(read, key, 1_000);
    const path = `/v2/requests/${read}?ticket=${ticket}`;
    await expect.poll(async () => (await get(path)).status, { timeout: 20_000 }).toBe(401);
    expect((await get(path)).text).toContain("the ticket is not valid");
  });

  it("dies with its key", async () => {
    const reader = await make({ scopes: ["read"] });
    const path = `/v2/requests/${read}?ticket=${await ticketFor(read, reader)}`;
    expect((await get(path)).status).toBe(200);
    await fleet.keys.revoke(reader.id);
    await expect.poll(async () => (await get(path)).text, { timeout: 5_000 }).toContain("revoked_api_key");
  });

  it("does not help a page of another site", async () => {
    const ticket = await ticketFor(read);
    const origin = "https://evil.example";
    const answer = await fetch(`${served.url}/v2/requests/${read}/events?ticket=${ticket}`, { headers: { origin } });
    expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining("BATON_ALLOWED_ORIGINS")]);
    expect(answer.headers.get("access-control-allow-origin")).toBeNull();
    expect(await socket(read, ["baton.v1", `baton.ticket.${ticket}`], { origin })).toBe(403);
    expect(await socket(read, ["baton.v1"], { origin })).toBe(403);
  });

  it("is in no log, and the audit says that it was given and why it was refused", async () => {
    const ticket = await ticketFor(read);
    await get(`/v2/requests/${other}/events?ticket=${ticket}`);
    await get(`/v2/jobs?ticket=${ticket}`);
    await socket(other, [`baton.ticket.${ticket}`]);
    const gateway = served.fleet.gateways[0]?.member.process ?? expect.fail("no gateway");
    const line = async (members: Readonly<Record<string, unknown>>) =>
      gateway.waitForLine(JSON.stringify(members), ({ fields }) =>
        Object.entries(members).every(([name, value]) => fields[name] === value),
      );
    await line({ event: "ticket_issued", tenant: "acme", key_id: key.id });
    await line({ event: "auth_failed", reason: "token", path: `/v2/requests/${other}/events` });
    for (const { text } of gateway.lines) expect(text).not.toContain(ticket.slice(3, 40));
  });
});

describe("a request for a ticket", () => {
  it.each<[object, string]>([
    [{}, "request"],
    [{ request: 5 }, "request"],
    [{ request: "r", ttl: 999 }, "'ttl' must be from 1000 to 60000 ms"],
    [{ request: "r", ttl: 60_001 }, "'ttl' must be from 1000 to 60000 ms"],
    [{ request: "r", scopes: ["read"] }, "scopes"],
  ])("is refused by the name of what is wrong: %j", async (body, named) => {
    const { status, text } = await issue(key, body);
    expect([status, text]).toEqual([400, expect.stringContaining(named)]);
  });

  it("of an operator that acts for a tenant is for that tenant's requests", async () => {
    const operator = await make({ tenant: "default", scopes: ["operator", "read"] });
    const headers = { ...operator.headers, "baton-tenant": "acme" };
    const { body } = await ask(`${served.url}/v2/tickets`, { body: { request: read }, headers });
    const { ticket } = body as unknown as Ticket;
    expect((await get(`/v2/requests/${read}?ticket=${ticket}`)).status).toBe(200);
  });
});
