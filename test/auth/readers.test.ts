/**
 * A key and its tenant have as many streams, WebSockets and long polls open at a gateway as their
 * limits say, and one more once a connection has closed. The worker is away while readers are
 * open, so that no stream ends by itself.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import type { WhoAmI } from "../../gateway/service/keys.js";
import { ask } from "../jobs/ask.js";
import { useKeyedFleet, type Key } from "./keyed.js";

const MODEL = "gen-mha";
const fleet = useKeyedFleet({ models: [MODEL] });
const { served, make, setTenant } = fleet;
const generate = `/v2/models/${MODEL}/generate`;

interface Refused {
  readonly status: number;
  readonly text: string;
  readonly headers?: Headers;
}

/** A reader whose answer has begun, or the refusal of the reader. */
type Opened = { readonly close: () => Promise<void> } | Refused;

const open = async (path: string, { headers }: Pick<Key, "headers">, body?: object): Promise<Opened> => {
  const leaving = new AbortController();
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(served.url + path, { ...init, headers, signal: leaving.signal });
  if (answer.status !== 200) return { status: answer.status, text: await answer.text(), headers: answer.headers };
  return {
    async close() {
      leaving.abort();
      await answer.text().catch(() => undefined);
    },
  };
};

const openSocket = (id: string, { headers }: Pick<Key, "headers">) =>
  new Promise<Opened>((resolve, reject) => {
    const client = new WebSocket(`${served.url.replace("http", "ws")}/v2/requests/${id}/ws`, { headers });
    const close = () =>
      new Promise<void>((closed) => {
        client.once("close", () => closed());
        client.close();
      });
    client.on("open", () => resolve({ close }));
    client.on("unexpected-response", (_, answer) => {
      const parts: Buffer[] = [];
      answer.on("data", (part: Buffer) => parts.push(part));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString() }));
    });
    client.on("error", reject);
  });

async function submit({ headers }: Key): Promise<string> {
  const { body } = await ask(served.url + generate, {
    body: { text_input: "a lap", max_tokens: 300 },
    headers: { ...headers, prefer: "respond-async" },
  });
  return body.id;
}

/** @returns the limits in force and the uses of them, as the key sees them */
async function look({ headers }: Key): Promise<WhoAmI> {
  return (await ask(`${served.url}/v2/whoami`, { headers })).body as unknown as WhoAmI;
}

const opensAgain = (opening: () => Promise<Opened>) =>
  expect.poll(
    async () => {
      const opened = await opening();
      if (!("close" in opened)) return opened.status;
      await opened.close();
      return "open";
    },
    { timeout: 10_000 },
  );

const refusal = (scope: "key" | "tenant", most: number) => ({
  error: `the ${scope === "key" ? "API key" : "tenant"} may have ${most} open readers at a gateway (open_readers)`,
  code: "stream_limit",
  limit: "open_readers",
  scope,
});

describe("open readers", () => {
  beforeAll(async () => served.fleet.workers[0]?.kill());

  const ways: Readonly<Record<string, (id: string, key: Key) => Promise<Opened>>> = {
    "a stream of events": (id, key) => open(`/v2/requests/${id}/events`, key),
    "a durable stream": (id, key) => open(`/v2/requests/${id}/stream?offset=-1&live=sse`, key),
    "a WebSocket": openSocket,
  };

  it.each(Object.keys(ways))("of a key are as many as its limit, also with %s", async (name) => {
    const key = await make({ tenant: "acme", limits: { open_readers: 1 } });
    const id = await submit(key);
    const way = ways[name] ?? expect.fail(name);
    const first = await way(id, key);
    expect(first).toHaveProperty("close");
    expect(await look(key)).toMatchObject({ limits: { open_readers: 1 }, used: { open_readers: 1 } });
    for (const another of Object.values(ways)) {
      const refused = (await another(id, key)) as Refused;
      expect([refused.status, JSON.parse(refused.text)]).toEqual([429, refusal("key", 1)]);
    }
    const polled = (await open(`/v2/requests/${id}/stream?offset=now&live=long-poll`, key)) as Refused;
    expect(polled.status).toBe(429);
    expect([polled.headers?.get("retry-after"), polled.headers?.get("retry-after-ms")]).toEqual(["1", "1000"]);
    // An answer that ends by itself is no reader, and neither is one that has no body.
    expect((await fetch(`${served.url}/v2/requests/${id}/stream`, { headers: key.headers })).status).toBe(200);
    const head = { method: "HEAD", headers: key.headers };
    expect((await fetch(`${served.url}/v2/requests/${id}/events`, head)).status).toBe(200);
    if ("close" in first) await first.close();
    await opensAgain(() => way(id, key)).toBe("open");
    await expect.poll(async () => (await look(key)).used.open_readers, { timeout: 10_000 }).toBe(0);
    const gateway = served.fleet.gateways[0]?.member.process ?? expect.fail("no gateway");
    const { fields } = await gateway.waitForLine(
      "rate_limited",
      ({ fields: of }) => of["event"] === "rate_limited" && of["key_id"] === key.id,
    );
    expect(fields).toMatchObject({ limit: "open_readers", scope: "key", path: expect.stringContaining(id) as string });
  });

  it("count a long poll while it waits", async () => {
    const key = await make({ tenant: "poller", limits: { open_readers: 1 } });
    const id = await submit(key);
    const leaving = new AbortController();
    const path = `/v2/requests/${id}/stream?offset=now&live=long-poll`;
    const polled = fetch(served.url + path, { headers: key.headers, signal: leaving.signal }).catch(() => "left");
    await expect.poll(async () => (await look(key)).used.open_readers, { timeout: 10_000 }).toBe(1);
    expect(await open(`/v2/requests/${id}/events`, key)).toMatchObject({ status: 429 });
    leaving.abort();
    expect(await polled).toBe("left");
    await opensAgain(() => open(`/v2/requests/${id}/events`, key)).toBe("open");
  });

  it("of a tenant are those of all its keys, and of a ticket those of its key", async () => {
    const [one, other] = [await make({ tenant: "few" }), await make({ tenant: "few" })];
    await setTenant("few", { limits: { open_readers: 2 } });
    const id = await submit(one);
    const { body } = await ask(`${served.url}/v2/tickets`, { body: { request: id }, headers: one.headers });
    const { ticket } = body as unknown as { readonly ticket: string };
    const byTicket = `/v2/requests/${id}/events?ticket=${ticket}`;
    const noKey = { headers: {} as Key["headers"] };
    const opened = [await open(byTicket, noKey), await openSocket(id, other)];
    const refused = (await open(`/v2/requests/${id}/events`, other)) as Refused;
    expect([refused.status, JSON.parse(refused.text)]).toEqual([429, refusal("tenant", 2)]);
    expect(await open(byTicket, noKey)).toMatchObject({ status: 429 });
    const stranger = await make({ tenant: "many" });
    const elsewhere = await open(`/v2/requests/${await submit(stranger)}/events`, stranger);
    for (const reader of [...opened, elsewhere]) if ("close" in reader) await reader.close();
    await opensAgain(() => open(byTicket, noKey)).toBe("open");
  });

  it("of a request that is not there leave no count behind", async () => {
    const key = await make({ tenant: "lost", limits: { open_readers: 1 } });
    for (let i = 0; i < 3; i++) {
      expect(await open("/v2/requests/none.0.gen-mha/events", key)).toMatchObject({ status: 404 });
      expect(await openSocket("none.0.gen-mha", key)).toMatchObject({ status: 404 });
    }
  });
});

describe("answers that are streams", () => {
  beforeAll(async () => served.fleet.workers[0]?.start());

  it("are readers of their key, are refused before they cost anything, and are forbidden by 0", async () => {
    const key = await make({ tenant: "none", limits: { open_readers: 0, requests_per_second: 0.001, burst: 2 } });
    const text = { text_input: "a lap", max_tokens: 5 };
    const chat = { model: MODEL, prompt: "a lap", max_tokens: 5, stream: true };
    const streamed = (await open(`/v2/models/${MODEL}/generate_stream`, key, text)) as Refused;
    expect([streamed.status, JSON.parse(streamed.text)]).toEqual([429, refusal("key", 0)]);
    const chunks = (await open("/v1/completions", key, chat)) as Refused;
    expect([chunks.status, JSON.parse(chunks.text)]).toMatchObject([
      429,
      { error: { code: "stream_limit", type: "requests" } },
    ]);
    expect((await look(key)).used.requests?.remaining).toBe(2);
    // Whole answers are no readers.
    expect(await open(generate, key, text)).toHaveProperty("close");
    expect(await open("/v1/completions", key, { ...chat, stream: false })).toHaveProperty("close");
    const free = await make({ tenant: "free", limits: { open_readers: 1 } });
    expect(await open(`/v2/models/${MODEL}/generate_stream`, free, text)).toHaveProperty("close");
  });
});
