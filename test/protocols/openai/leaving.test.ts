/**
 * Clients that leave before their answer. A worker does not compute an answer that no other client
 * awaits.
 */
import { once } from "node:events";
import { request, type ClientRequest, type IncomingMessage } from "node:http";
import { beforeEach, expect, it } from "vitest";
import { InferenceError } from "#shared/errors.js";
import { generators, useGateway } from "../../support/gateway/test-gateway.js";
import { delta, record } from "../../fixtures/token-records.js";
import { chatBody, completionBody, textInput } from "../../fixtures/requests.js";

const gateway = useGateway({ models: generators });
beforeEach(() => {
  gateway.script = (_, stream) => void stream.append(record(0, delta("a")));
});

const paths = {
  chat: ["/v1/chat/completions", chatBody],
  completions: ["/v1/completions", completionBody],
  generate: ["/v2/models/talk/generate", { text_input: "hi" }],
  infer: ["/v2/models/talk/infer", { inputs: [textInput("hi")] }],
  generate_stream: ["/v2/models/talk/generate_stream", { text_input: "hi" }],
} as const;

const streaming = [
  ["chat", { stream: true }],
  ["completions", { stream: true, prompt: ["a", "b"] }],
  ["generate_stream", {}],
  ["infer", { parameters: { stream: true } }],
] as const;

function begin(of: keyof typeof paths, members: object = {}, headers: Record<string, string> = {}): ClientRequest {
  const [path, body] = paths[of];
  // Without this header `infer` has no stream, in spite of such parameters.
  const accept = "stream" in members || "parameters" in members ? { accept: "text/event-stream" } : {};
  const sent = request(`${gateway.url}${path}`, { method: "POST", headers: { ...accept, ...headers } });
  sent.on("error", () => undefined);
  sent.end(JSON.stringify({ ...body, ...members }));
  return sent;
}

it.each(["chat", "completions", "generate", "infer"] as const)("ends a whole answer by %s at once", async (of) => {
  const arrival = gateway.next();
  const sent = begin(of);
  const stream = await arrival;
  await stream.until(({ readers }) => readers === 1);
  sent.destroy();
  await stream.until(({ cancelled, readers }) => cancelled && readers === 0);
});

it("ends the generations of all prompts", async () => {
  const sent = begin("completions", { prompt: ["a", "b", "c"] });
  while (gateway.streams.length < 3) await gateway.next();
  sent.destroy();
  for (const stream of gateway.streams) await stream.until(({ cancelled, readers }) => cancelled && readers === 0);
});

it.each(["chat", "completions", "generate", "infer"] as const)(
  "leaves a keyed whole answer by %s to run to its end, unread: its retry finds it",
  async (of) => {
    const arrival = gateway.next();
    const sent = begin(of, {}, { "idempotency-key": "k" });
    const stream = await arrival;
    expect(stream.request.background).toBe(true);
    await stream.until(({ readers }) => readers === 1);
    sent.destroy();
    await stream.until(({ readers }) => readers === 0);
    expect(stream.cancelled).toBe(false);
  },
);

it("leaves the prompts of a key to run of which one was refused: its retry finds the others", async () => {
  let admitted = 0;
  gateway.script = () => {
    if (++admitted === 2) throw new InferenceError("queue_full", "Exceeds maximum queue size");
  };
  const sent = begin("completions", { prompt: ["a", "b", "c"] }, { "idempotency-key": "k" });
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.resume();
  expect(response.statusCode).toBe(503);
  expect(gateway.streams.map(({ cancelled }) => cancelled)).toEqual([false, false]);
});

it.each(streaming)("of a stream by %s lets go of its records and does no more", async (of, members) => {
  const sent = begin(of, members);
  await new Promise<void>((resolve) => sent.on("response", (response) => response.once("data", () => resolve())));
  sent.destroy();
  for (const stream of gateway.streams) {
    await stream.until(({ readers }) => readers === 0);
    expect(stream.cancelled).toBe(false);
  }
});

it.each(streaming)("of a stream by %s whose first record is still to come ends it", async (of, members) => {
  gateway.script = () => undefined;
  const prompts = of === "completions" ? 2 : 1;
  const sent = begin(of, members);
  while (gateway.streams.length < prompts) await gateway.next();
  for (const stream of gateway.streams) await stream.until(({ readers }) => readers === 1);
  sent.destroy();
  for (const stream of gateway.streams) await stream.until(({ cancelled, readers }) => cancelled && readers === 0);
});

it.each(streaming)("of a stream by %s ends it, although its first record overtakes the news", async (of, members) => {
  gateway.script = () => undefined;
  const prompts = of === "completions" ? 2 : 1;
  const sent = begin(of, members);
  while (gateway.streams.length < prompts) await gateway.next();
  for (const stream of gateway.streams) await stream.until(({ readers }) => readers === 1);
  sent.destroy();
  for (const stream of gateway.streams) stream.append(record(0, delta("a")));
  for (const stream of gateway.streams) await stream.until(({ cancelled, readers }) => cancelled && readers === 0);
});

it.each(streaming)("of such a stream by %s under a key leaves it for its retry", async (of, members) => {
  gateway.script = () => undefined;
  const prompts = of === "completions" ? 2 : 1;
  const sent = begin(of, members, { "idempotency-key": "k" });
  while (gateway.streams.length < prompts) await gateway.next();
  for (const stream of gateway.streams) await stream.until(({ readers }) => readers === 1);
  sent.destroy();
  for (const stream of gateway.streams) {
    await stream.until(({ readers }) => readers === 0);
    expect(stream.cancelled).toBe(false);
  }
});

it.each(["chat", "generate_stream"] as const)("of a stream by %s that it had stopped reading, too", async (of) => {
  const page = "a".repeat(10_000);
  gateway.script = (_, stream) => {
    for (let index = 0; index < 2000; index++) stream.append(record(index, delta(page)));
  };
  const sent = begin(of, { stream: true });
  await new Promise<void>((resolve) => sent.on("response", (response) => response.once("readable", () => resolve())));
  sent.destroy();
  await gateway.only().until(({ readers }) => readers === 0);
});
