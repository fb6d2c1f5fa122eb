/**
 * The AI SDK and TanStack AI with the transports that read durable streams, all unmodified, show a
 * request whole while its worker and a gateway die.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { createDurableChatTransport } from "@durable-streams/aisdk-transport";
import { durableStreamConnection, materializeSnapshotFromDurableStream } from "@durable-streams/tanstack-ai-transport";
import { ChatClient, type UIMessage as TanStackMessage } from "@tanstack/ai-client";
import { AbstractChat, isTextUIPart, type ChatInit, type ChatState, type UIMessage } from "ai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { submitInBackground } from "../support/streams/front-doors.js";
import { StreamLab } from "../support/streams/lab.js";
import { holderOf, readStored, slowDown } from "../support/streams/stored.js";
import { until } from "../support/until.js";

/** A frozen worker is not declared dead before the test kills it. */
const FROZEN_MS = 60_000;
const LIMIT_MS = 120_000;
let lab: StreamLab;
let application: Server;
let api: string;
let beStrict: () => void;
/** The newest request of each chat, which the application keeps. */
const requests = new Map<string, string>();

const streamUrl = (id: string, form: string) => `${lab.fleet.urls[0]}/v2/requests/${id}/stream?format=${form}`;

/** An application's own server, which only hands out the addresses of streams. */
function serve(): Server {
  return createServer((incoming, outgoing) => {
    void (async () => {
      if (incoming.method === "POST") {
        const { id, messages } = (await json(incoming)) as { id: string; messages: UIMessage[] };
        const parameters = { max_tokens: 1_200, temperature: 1, seed: 20_261_121 };
        const ask = { name: id, model: "gen-mha", prompt: textOf(messages.at(-1)), parameters };
        requests.set(id, await submitInBackground(lab.fleet.urls[1] ?? "", ask));
      }
      const id = incoming.method === "POST" ? [...requests.keys()].at(-1) : incoming.url?.split("/")[2];
      const request = requests.get(id ?? "");
      if (request === undefined) outgoing.writeHead(204).end();
      else outgoing.writeHead(201, { location: streamUrl(request, "ai-sdk") }).end();
    })();
  });
}

beforeAll(async () => {
  const fleet = { gateways: 2, workers: 2, models: ["gen-mha"], leaseMs: FROZEN_MS };
  beStrict = tolerateBrokenConnections();
  lab = await StreamLab.open({ seed: 1, fleet });
  application = serve().listen(0, "127.0.0.1");
  await once(application, "listening");
  api = `http://127.0.0.1:${(application.address() as AddressInfo).port}/chat`;
}, LIMIT_MS);
afterAll(async () => {
  application.close();
  await lab.close();
  beStrict();
});

/** A page with the AI SDK's chat, as its bindings for React and others make it. */
class Page extends AbstractChat<UIMessage> {
  constructor(id: string, more: Partial<ChatInit<UIMessage>> = {}) {
    const state: ChatState<UIMessage> = {
      status: "ready",
      error: undefined,
      messages: [],
      pushMessage: (message) => (state.messages = [...state.messages, message]),
      popMessage: () => (state.messages = state.messages.slice(0, -1)),
      replaceMessage: (index, message) => (state.messages = state.messages.with(index, message)),
      snapshot: structuredClone,
    };
    super({ id, transport: createDurableChatTransport({ api }), state, ...more });
  }

  get answer(): string {
    return textOf(this.lastMessage?.role === "assistant" ? this.lastMessage : undefined);
  }
}

function textOf(message: UIMessage | undefined): string {
  return (message?.parts ?? [])
    .filter(isTextUIPart)
    .map(({ text }) => text)
    .join("");
}

/** A page with TanStack AI's chat, which reads one request. */
function tanStackPage(request: string, initialOffset?: string, initialMessages?: TanStackMessage[]) {
  const readUrl = streamUrl(request, "ag-ui");
  const options = { sendUrl: api, readUrl, ...(initialOffset !== undefined && { initialOffset }) };
  const errors: Error[] = [];
  const chat = new ChatClient({
    connection: durableStreamConnection(options),
    ...(initialMessages !== undefined && { initialMessages }),
    onError: (error) => errors.push(error),
  });
  return { chat, errors, answer: () => tanStackText(chat.getMessages()) };
}

function tanStackText(messages: readonly TanStackMessage[]): string {
  const parts = messages.filter(({ role }) => role === "assistant").flatMap((message) => message.parts);
  return parts.map((part) => (part.type === "text" ? part.content : "")).join("");
}

async function told(request: string): Promise<string> {
  const { log } = await readStored(lab.redis, request);
  const records = log.map((text) => JSON.parse(text) as { choices: { text: string }[] });
  return records.map(({ choices }) => choices[0]?.text ?? "").join("");
}

/**
 * The client of Durable Streams rejects twice for a broken connection, and the AI SDK's transport
 * handles one rejection. A browser shows the other in its console.
 */
function tolerateBrokenConnections(): () => void {
  const name = "unhandledRejection";
  const usual = process.listeners(name);
  const tolerant: NodeJS.UnhandledRejectionListener = (error, promise) => {
    if (error instanceof TypeError && error.message === "terminated") return;
    for (const one of usual) one.call(process, error, promise);
  };
  process.removeAllListeners(name).on(name, tolerant);
  return () => usual.reduce((all, one) => all.on(name, one), process.off(name, tolerant));
}

describe("an answer whose worker and then a gateway are killed", () => {
  it(
    "is shown whole by the AI SDK and by TanStack AI, live, resumed in the middle, and afterwards",
    async () => {
      const { fleet, redis } = lab;
      const finished: string[] = [];
      const page = new Page("one", { onFinish: ({ finishReason = "none" }) => finished.push(finishReason) });
      slowDown(fleet);
      const sent = page.sendMessage({ text: "the baton" });
      await until(() => page.answer.length > 50);
      const request = requests.get("one") ?? "";
      // While the worker is frozen, the stream stops in the middle.
      const holder = await holderOf(redis, fleet.workers, request);
      holder.freeze();
      fleet.lines.workerRedis.heal();
      const snapshot = await materializeSnapshotFromDurableStream({ readUrl: streamUrl(request, "ag-ui") });
      const begun = tanStackText(snapshot.messages as TanStackMessage[]);
      expect(begun.length).toBeGreaterThan(0);
      const other = tanStackPage(request, snapshot.offset, snapshot.messages as TanStackMessage[]);
      other.chat.subscribe();
      await holder.kill();
      await until(() => page.answer.length > begun.length && other.answer().length > begun.length);

      const [gateway] = fleet.gateways;
      await gateway?.member.kill();
      await sent;
      expect(page.status).toBe("error");
      await until(() => other.errors.length > 0);
      await Promise.all([holder.start(), gateway?.member.start()]);
      other.chat.subscribe();
      await page.resumeStream();
      expect(page.status).toBe("ready");
      expect(finished.at(-1)).toBe("length");
      const whole = await told(request);
      expect(page.answer).toBe(whole);
      expect(page.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
      await until(() => other.answer().length >= whole.length);
      expect(other.answer()).toBe(whole);

      const reloaded = new Page("one");
      await reloaded.resumeStream();
      expect([reloaded.status, reloaded.answer]).toEqual(["ready", whole]);
      const late = tanStackPage(request);
      late.chat.subscribe();
      await until(() => late.chat.getConnectionStatus() === "disconnected");
      expect([late.answer(), late.errors]).toEqual([whole, []]);
      expect((await readStored(redis, request)).takenAt).toBeGreaterThan(0);
    },
    LIMIT_MS,
  );
});

it(
  "an answer that is cancelled is shown as that",
  async () => {
    const finished: string[] = [];
    const page = new Page("two", { onFinish: ({ finishReason = "none" }) => finished.push(finishReason) });
    const sent = page.sendMessage({ text: "the baton" });
    await until(() => page.answer.length > 0);
    const request = requests.get("two") ?? "";
    const other = tanStackPage(request);
    other.chat.subscribe();
    await until(() => other.answer().length > 0);
    await fetch(`${lab.fleet.urls[1]}/v2/requests/${request}`, { method: "DELETE" });
    await sent;
    const whole = await told(request);
    expect([page.status, finished, page.answer]).toEqual(["ready", ["none"], whole]);
    await until(() => other.errors.length > 0);
    expect([other.errors[0]?.message, other.answer()]).toEqual(["the request was cancelled", whole]);
  },
  LIMIT_MS,
);

it("a chat that has asked nothing yet has nothing to resume", async () => {
  const page = new Page("three");
  await page.resumeStream();
  expect([page.status, page.messages]).toEqual(["ready", []]);
});
