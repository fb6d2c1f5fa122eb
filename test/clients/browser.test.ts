/** A page in a browser reads a stream with a ticket, by EventSource and by WebSocket. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { useKeyedFleet } from "../auth/keyed.js";
import { ask } from "../jobs/ask.js";

const CHROMIUM = "/usr/bin/chromium";
const MODEL = "gen-mha";
const { served, make } = useKeyedFleet({ models: [MODEL], direct: true });

/** What the page has seen: how many records each way, and how it was refused without a ticket. */
interface Seen {
  readonly events: number;
  readonly messages: number;
  readonly protocol: string;
  readonly withoutTicket: string;
}

/** Runs in the page. It has no key, and no way to send one. */
const script = `
  const { gateway, request, ticket } = Object.fromEntries(new URLSearchParams(location.search));
  const path = gateway + "/v2/requests/" + request;
  const events = (url) =>
    new Promise((resolve) => {
      const source = new EventSource(url);
      let count = 0;
      source.onmessage = ({ data }) => {
        count += 1;
        if (!JSON.parse(data).final) return;
        source.close();
        resolve(count);
      };
      source.onerror = () => {
        source.close();
        resolve("refused");
      };
    });
  const messages = () =>
    new Promise((resolve) => {
      const socket = new WebSocket(path.replace("http", "ws") + "/ws", ["baton.v1", "baton.ticket." + ticket]);
      let count = 0;
      socket.onmessage = () => (count += 1);
      socket.onclose = () => resolve({ messages: count, protocol: socket.protocol });
    });
  const seen = {
    events: await events(path + "/events?ticket=" + ticket),
    ...(await messages()),
    withoutTicket: await events(path + "/events"),
  };
  await fetch("/seen", { method: "POST", body: JSON.stringify(seen) });
`;

/** Shows the page to a browser until the page says what it has seen. */
async function see(query: Readonly<Record<string, string>>): Promise<Seen> {
  const server = createServer();
  const said = new Promise<Seen>((resolve) => {
    server.on("request", (incoming: IncomingMessage, outgoing) => {
      if (incoming.method !== "POST") {
        outgoing.setHeader("content-type", "text/html").end(`<script type="module">${script}</script>`);
        return;
      }
      let text = "";
      incoming.on("data", (part: Buffer) => (text += part.toString()));
      incoming.on("end", () => {
        outgoing.end();
        resolve(JSON.parse(text) as Seen);
      });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const folder = mkdtempSync(join(tmpdir(), "baton-browser-"));
  const page = `http://127.0.0.1:${(server.address() as AddressInfo).port}/?${new URLSearchParams(query).toString()}`;
  const options = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${folder}`, page];
  const browser = spawn(CHROMIUM, options, { stdio: "ignore", detached: true });
  const ended = once(browser, "close");
  onTestFinished(async () => {
    if (browser.exitCode === null && browser.pid !== undefined) process.kill(-browser.pid, "SIGKILL");
    await ended;
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  return Promise.race([said, ended.then(([code]) => expect.fail(`the browser ended with ${String(code)}`))]);
}

const isThere = existsSync(CHROMIUM);

it.skipIf(!isThere)(`a page with a ticket${isThere ? "" : " (skipped: needs Debian's chromium)"}`, async () => {
  const { headers } = await make({ scopes: ["infer", "read"] });
  const { body } = await ask(`${served.url}/v2/models/${MODEL}/generate`, {
    body: { text_input: "a lap", max_tokens: 5 },
    headers: { ...headers, prefer: "respond-async" },
  });
  const given = await ask(`${served.url}/v2/tickets`, { body: { request: body.id, ttl: 60_000 }, headers });
  const { ticket } = given.body as unknown as { readonly ticket: string };
  const events = await (await fetch(`${served.url}/v2/requests/${body.id}/events`, { headers })).text();
  const records = [...events.matchAll(/^data: /gm)].length;
  expect(records).toBeGreaterThan(0);
  expect(await see({ gateway: served.url, request: body.id, ticket })).toEqual({
    events: records,
    messages: records,
    protocol: "baton.v1",
    withoutTicket: "refused",
  });
});
