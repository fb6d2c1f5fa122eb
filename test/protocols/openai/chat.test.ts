/** `/v1/chat/completions` on the wire. */
import { beforeEach, describe, expect, it } from "vitest";
import { generators, useGateway } from "../../support/gateway/test-gateway.js";
import { type Answer, exchange } from "../../support/gateway/http.js";
import { delta, finalRecord, record } from "../../fixtures/token-records.js";
import { eventsIn, jsonIn } from "../../support/streams/event-source.js";
import { chatBody } from "../../fixtures/requests.js";

const gateway = useGateway({ models: generators });

const post = (body: object | string): Promise<Answer> =>
  exchange(`${gateway.url}/v1/chat/completions`, typeof body === "string" ? body : { ...chatBody, ...body });

const prompt = async (body: object): Promise<unknown> => {
  await post(body);
  return gateway.only().request.spec.prompt;
};

describe("a prompt", () => {
  it("is its messages, the template's to read", async () => {
    const call = { id: "c", type: "function", function: { name: "now", arguments: "{}" } };
    const messages = [
      { role: "system", content: "Be brief." },
      { role: "developer", content: "Be kind." },
      // prettier-ignore
      { role: "user", content: [{ type: "text", text: "a" }, { type: "text", text: "b" }], name: "ann" },
      { role: "assistant", tool_calls: [call] },
      { role: "tool", content: "12:00", tool_call_id: "c" },
    ];
    expect(await prompt({ messages, add_generation_prompt: false })).toEqual({
      kind: "chat",
      messages: [
        messages[0],
        { role: "system", content: "Be kind." },
        { role: "user", content: "a\nb", name: "ann" },
        { role: "assistant", content: null, tool_calls: [call] },
        messages[4],
      ],
      addGenerationPrompt: false,
    });
  });

  it("can be written as JSON whatever it holds", async () => {
    await post(
      '{"model":"talk","messages":[{"role":"user","content":"hi","n":18446744073709551615,"__proto__":{"a":1}}]}',
    );
    const spec = JSON.stringify(gateway.only().request.spec.prompt);
    expect(spec).toContain('"n":18446744073709552000,"__proto__":{"a":1}');
  });

  it("has no tools where none shall be called", async () => {
    expect(await prompt({ tools: [{ type: "function" }], tool_choice: "none" })).not.toHaveProperty("tools");
  });

  it("asks for no end of tokens but the context's, and for log probabilities by two names", async () => {
    await post({ logprobs: true, top_logprobs: 3, max_completion_tokens: 9, max_tokens: 8 });
    await post({ logprobs: true });
    await post({ logprobs: false });
    expect(gateway.streams.map(({ request: { spec } }) => [spec.sampling.logprobs, spec.sampling.maxTokens])).toEqual([
      [3, 9],
      [0, null],
      [null, null],
    ]);
  });
});

describe("a whole answer", () => {
  it("has OpenAI's members in full", async () => {
    const { created, ...rest } = JSON.parse((await post({})).json) as Record<string, unknown>;
    expect(created).toEqual(expect.any(Number));
    expect(rest).toEqual({
      id: "chatcmpl-r0.0.1.talk",
      object: "chat.completion",
      model: "talk",
      system_fingerprint: "fp_0123456789ab",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "Hello, you!", refusal: null },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
    });
  });
});

describe("log probabilities", () => {
  const token = { token: "a", bytes: [97], logprob: -1 };
  const told = { ...token, top_logprobs: [{ token: "b", bytes: [98], logprob: -0.5 }] };
  beforeEach(() => {
    const logprobs = [{ ...token, id: 1, top: [{ id: 2, token: "b", bytes: [98], logprob: -0.5 }] }];
    gateway.script = (_, stream) =>
      void stream.append(
        record(0, delta("", { logprobs })),
        finalRecord(1, 2, delta("aa", { logprobs, finish_reason: "stop" })),
      );
  });

  it("are a list of tokens", async () => {
    expect(JSON.parse((await post({ logprobs: true, top_logprobs: 1 })).json)).toMatchObject({
      choices: [{ logprobs: { content: [told, told], refusal: null } }],
    });
  });

  it("come with each chunk", async () => {
    const chunks = jsonIn<{ choices: object[] }>(eventsIn((await post({ logprobs: true, stream: true })).json));
    expect(chunks.slice(1).flatMap(({ choices }) => choices)).toMatchObject([
      { delta: { content: "" }, logprobs: { content: [told] }, finish_reason: null },
      { delta: { content: "aa" }, logprobs: { content: [told] }, finish_reason: "stop" },
    ]);
  });
});

describe("a stream", () => {
  it("begins with the role, goes on with text, and ends with the reason and DONE", async () => {
    const events = eventsIn((await post({ stream: true })).json);
    // The first record's text is held back and makes no chunk. The chunk with the role ends that
    // record.
    expect(events.map(({ id }) => id)).toEqual(["0", "1", "2", "3", undefined]);
    expect(events.at(-1)?.data).toBe("[DONE]");
    const [first] = jsonIn(events);
    expect(first).toEqual({
      id: "chatcmpl-r0.0.1.talk",
      object: "chat.completion.chunk",
      created: first?.["created"],
      model: "talk",
      system_fingerprint: "fp_0123456789ab",
      choices: [
        { index: 0, delta: { role: "assistant", content: "", refusal: null }, logprobs: null, finish_reason: null },
      ],
    });
    expect(
      jsonIn<{ choices: object[] }>(events)
        .flatMap(({ choices }) => choices)
        .slice(1),
    ).toEqual([
      { index: 0, delta: { content: "Hel" }, logprobs: null, finish_reason: null },
      { index: 0, delta: { content: "lo, " }, logprobs: null, finish_reason: null },
      { index: 0, delta: { content: "you!" }, logprobs: null, finish_reason: "stop" },
    ]);
  });

  it("of several choices tells every role first, and ends each choice by itself", async () => {
    gateway.script = (_, stream) =>
      void stream.append(
        record(0, delta("a"), delta("b", { index: 1, finish_reason: "length" })),
        finalRecord(1, 3, delta("", { tokens: [], finish_reason: "stop" })),
      );
    const events = eventsIn((await post({ stream: true, n: 2 })).json);
    expect(events.map(({ id }) => id)).toEqual([undefined, undefined, undefined, "0", "1", undefined]);
    const choices = jsonIn<{ choices: { index: number; delta: object; finish_reason: string | null }[] }>(
      events,
    ).flatMap((chunk) => chunk.choices);
    expect(choices.map(({ index, delta, finish_reason }) => [index, delta, finish_reason])).toEqual([
      [0, { role: "assistant", content: "", refusal: null }, null],
      [1, { role: "assistant", content: "", refusal: null }, null],
      [0, { content: "a" }, null],
      [1, { content: "b" }, "length"],
      [0, {}, "stop"],
    ]);
  });
});
