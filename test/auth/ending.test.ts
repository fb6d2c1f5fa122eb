/**
 * A key that is good no longer ends all that it has open, within five seconds; what was admitted
 * runs on. The worker is away meanwhile, so that no stream ends by itself.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { ask } from "../jobs/ask.js";
import { answerTo, beginUpload, FORM_END } from "../files/upload.js";
import { useKeyedFleet, type Key } from "./keyed.js";

const MODEL = "gen-mha";
const fleet = useKeyedFleet({ models: [MODEL] });
const { served, make, setTenant } = fleet;

/** A stream of events that is open. */
interface Opened {
  /** Resolves with all that came, once the stream has ended. */
  readonly all: Promise<string>;
}

async function open(path: string, key?: Key, body?: object): Promise<Opened> {
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(`${served.url}${path}`, { ...init, ...(key !== undefined && { headers: key.headers }) });
  if (answer.status !== 200) throw new Error(`${path} was answered ${answer.status} ${await answer.text()}`);
  return { all: answer.text() };
}

async function submit(key: Key): Promise<string> {
  const answer = await fetch(`${served.url}/v2/models/${MODEL}/generate`, {
    method: "POST",
    body: JSON.stringify({ text_input: "a lap", max_tokens: 300 }),
    headers: { ...key.headers, prefer: "respond-async" },
  });
  return ((await answer.json()) as { id: string }).id;
}

const closeCode = (socket: WebSocket): Promise<string> =>
  new Promise((resolve) => socket.on("close", (code, reason) => resolve(`${code} ${reason.toString()}`)));

/** The last event of a stream. */
const lastOf = (events: string): string => events.trimEnd().split("\n\n").at(-1) ?? "";
const LIMIT_MS = 5_000;
const within = <T>(some: Promise<T>): Promise<T | "too late"> =>
  Promise.race([some, new Promise<"too late">((resolve) => setTimeout(() => resolve("too late"), LIMIT_MS))]);

describe("a key", () => {
  const worker = () => served.fleet.workers[0];
  let revoked: Key;
  let other: Key;
  let admitted: string;
  let streams: Readonly<Record<string, Opened>>;
  let socket: Promise<string>;
  let poll: Promise<Response>;
  let kept: Opened;
  beforeAll(async () => {
    [revoked, other] = [await make(), await make()];
    const text = { text_input: "over and over", max_tokens: 4_000 };
    const prompt = { model: MODEL, prompt: "over and over", max_tokens: 4_000, stream: true };
    const [generated, completed] = await Promise.all([
      open(`/v2/models/${MODEL}/generate_stream`, revoked, text),
      open("/v1/completions", revoked, prompt),
    ]);
    await worker()?.kill();
    admitted = await submit(revoked);
    const requests = `/v2/requests/${admitted}`;
    const { body } = await ask(`${served.url}/v2/tickets`, { body: { request: admitted }, headers: revoked.headers });
    const { ticket } = body as unknown as { readonly ticket: string };
    streams = {
      generate_stream: generated,
      completions: completed,
      events: await open(`${requests}/events`, revoked),
      "events with a ticket": await open(`${requests}/events?ticket=${ticket}`),
      "durable stream": await open(`${requests}/stream?offset=-1&live=sse`, revoked),
    };
    kept = await open(`${requests}/events`, other);
    const client = new WebSocket(`${served.url.replace("http", "ws")}${requests}/ws`, { headers: revoked.headers });
    socket = closeCode(client);
    await new Promise((resolve) => client.once("open", resolve));
    poll = fetch(`${served.url}${requests}/stream?offset=now&live=long-poll`, { headers: revoked.headers });
  });

  it("that is revoked ends its streams, WebSockets and long polls, and refuses its uploads at their end", async () => {
    const upload = beginUpload(served.url, revoked.headers);
    const answered = answerTo(upload);
    upload.write("{}\n");
    await fleet.keys.revoke(revoked.id);
    for (const [name, { all }] of Object.entries(streams)) {
      const last = lastOf(await within(all));
      expect([name, last]).toEqual([name, expect.stringMatching(/^event: error\ndata: .*"code":"invalid_api_key"/)]);
    }
    expect(await within(socket)).toBe("4401 invalid_api_key");
    const polled = await within(poll);
    expect(polled === "too late" ? polled : [polled.status, await polled.text()]).toEqual([
      401,
      expect.stringContaining("revoked_api_key"),
    ]);
    upload.end(FORM_END);
    expect(await answered).toMatchObject({ status: 401, body: { error: { code: "revoked_api_key" } } });
  });

  it("that is good keeps its streams, and what another key had admitted runs on", async () => {
    await worker()?.start();
    expect(lastOf(await kept.all)).toContain('"final":true');
    const answer = await fetch(`${served.url}/v2/requests/${admitted}`, { headers: other.headers });
    expect(await answer.json()).toMatchObject({ state: "completed" });
  });

  it("that expires ends its streams, too", async () => {
    await worker()?.kill();
    const key = await make({ livesMs: 3_000 });
    const { all } = await open(`/v2/requests/${await submit(key)}/events`, key);
    expect(lastOf(await within(all))).toMatch(/"error":"the API key has expired","code":"invalid_api_key"/);
    await worker()?.start();
  });

  it("of a tenant that is suspended ends its streams, too", async () => {
    await worker()?.kill();
    const key = await make({ tenant: "late" });
    const { all } = await open(`/v2/requests/${await submit(key)}/events`, key);
    await setTenant("late", { state: "suspended" });
    expect(lastOf(await within(all))).toContain('"code":"tenant_suspended"');
    await worker()?.start();
  });
});
