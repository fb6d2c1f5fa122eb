/** OpenAI's own client and Vercel's AI SDK, unmodified, against the gateway. */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";
import OpenAI, { APIError, BadRequestError, NotFoundError, RateLimitError } from "openai";
import { beforeAll, describe, expect, it } from "vitest";
import { InferenceError } from "#shared/errors.js";
import { generators, useGateway } from "../../support/gateway/test-gateway.js";
import { hello } from "../../support/gateway/recorded-stream.js";
import { delta, failedRecord, finalRecord, record } from "../../fixtures/token-records.js";
import { chatBody } from "../../fixtures/requests.js";

const gateway = useGateway({ models: generators });
let client: OpenAI;
beforeAll(() => {
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: "none", maxRetries: 0 });
});

const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };

/** Answers with two choices that end at different times. */
function duet(_: unknown, stream: { append: (...records: ReturnType<typeof record>[]) => unknown }): void {
  stream.append(
    record(0, delta("a"), delta("x", { index: 1 })),
    record(1, delta("b", { finish_reason: "stop" }), delta("y", { index: 1 })),
    finalRecord(2, 5, delta("z", { index: 1, finish_reason: "length" })),
  );
}

describe("OpenAI's client", () => {
  it("lists models and finds one", async () => {
    const names: string[] = [];
    for await (const { id } of client.models.list()) names.push(id);
    expect(names).toEqual(["mute", "talk"]);
    expect(await client.models.retrieve("talk")).toMatchObject({ id: "talk", object: "model", max_model_len: 4096 });
    await expect(client.models.retrieve("nobody")).rejects.toThrow(NotFoundError);
  });

  it("completes a prompt", async () => {
    const completion = await client.completions.create({ model: "talk", prompt: "Once" });
    expect(completion).toMatchObject({ object: "text_completion", model: "talk", usage });
    expect(completion.choices).toEqual([{ index: 0, text: "Hello, you!", logprobs: null, finish_reason: "stop" }]);
    expect(gateway.only().request.spec.prompt).toEqual({ kind: "text", text: "Once" });
  });

  it("streams a completion", async () => {
    const texts: string[] = [];
    for await (const { choices } of await client.completions.create({ model: "talk", prompt: "Once", stream: true })) {
      texts.push(choices[0]?.text ?? "?");
    }
    expect(texts).toEqual(["Hel", "lo, ", "you!"]);
  });

  it("chats", async () => {
    const { choices, usage: used } = await client.chat.completions.create(chatBody);
    expect(choices[0]?.message).toEqual({ role: "assistant", content: "Hello, you!", refusal: null });
    expect(used).toEqual(usage);
  });

  it("streams a chat, and its own helper puts it together", async () => {
    const stream = client.chat.completions.stream({ ...chatBody, stream_options: { include_usage: true } });
    expect(await stream.finalContent()).toBe("Hello, you!");
    expect(await stream.totalUsage()).toEqual(usage);
  });

  it("gets several choices", async () => {
    gateway.script = duet;
    const { choices } = await client.chat.completions.create({ ...chatBody, n: 2 });
    expect(choices.map(({ message, finish_reason }) => [message.content, finish_reason])).toEqual([
      ["ab", "stop"],
      ["xyz", "length"],
    ]);
    const final = await client.chat.completions.stream({ ...chatBody, n: 2 }).finalChatCompletion();
    expect(final.choices.map(({ message }) => message.content)).toEqual(["ab", "xyz"]);
  });

  it("reads what was wrong with a request", async () => {
    const refusal = await client.chat.completions
      .create({ ...chatBody, temperature: 1000 })
      .catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(BadRequestError);
    expect(refusal).toMatchObject({
      status: 400,
      type: "invalid_request_error",
      param: "temperature",
      code: "invalid_argument",
      message: "400 temperature must be a number from 0 to 100, got 1000",
    });
    await expect(client.chat.completions.create({ ...chatBody, model: "nobody" })).rejects.toMatchObject({
      status: 404,
      code: "model_not_found",
      param: "model",
    });
  });

  it("tries again where it is told to", async () => {
    const patient = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: "none", maxRetries: 1 });
    gateway.script = () => {
      gateway.script = hello;
      throw new InferenceError("sequence_limit", "too many live sequences");
    };
    expect((await patient.chat.completions.create(chatBody)).choices).toHaveLength(1);
    gateway.script = () => {
      throw new InferenceError("sequence_limit", "too many live sequences");
    };
    await expect(client.chat.completions.create(chatBody)).rejects.toThrow(RateLimitError);
  });

  it("is told of a stream that fails on its way", async () => {
    gateway.script = (_, stream) => {
      stream.append(record(0, delta("Hel")), failedRecord(1, "poison_request", "it ended three workers"));
    };
    const texts: unknown[] = [];
    const failure = await (async () => {
      for await (const { choices } of await client.chat.completions.create({ ...chatBody, stream: true })) {
        texts.push(choices[0]?.delta.content);
      }
    })().catch((error: unknown) => error);
    expect(texts).toEqual(["", "Hel"]);
    expect(failure).toBeInstanceOf(APIError);
    expect(failure).toMatchObject({ code: "poison_request", type: "server_error", message: "it ended three workers" });
  });

  it("is told the id by which a stream goes on elsewhere", async () => {
    const { response } = await client.chat.completions.create({ ...chatBody, stream: true }).withResponse();
    expect(response.headers.get("baton-request-id")).toBe("r0.0.1.talk");
    await response.body?.cancel();
  });
});

describe("the AI SDK", () => {
  const provider = (includeUsage = true) =>
    createOpenAICompatible({ name: "baton", baseURL: `${gateway.url}/v1`, includeUsage });

  it("generates text", async () => {
    const { text, finishReason, usage } = await generateText({ model: provider()("talk"), prompt: "hi" });
    expect([text, finishReason, usage.totalTokens]).toEqual(["Hello, you!", "stop", 7]);
    expect(gateway.only().request.spec.prompt).toMatchObject({ messages: [{ role: "user", content: "hi" }] });
  });

  it("streams text, with what was used", async () => {
    const result = streamText({ model: provider()("talk"), prompt: "hi", system: "Be brief." });
    const texts: string[] = [];
    for await (const text of result.textStream) texts.push(text);
    expect(texts).toEqual(["Hel", "lo, ", "you!"]);
    expect([await result.finishReason, (await result.usage).totalTokens]).toEqual(["stop", 7]);
  });

  it("completes a prompt, whole and streamed", async () => {
    const model = provider().completionModel("talk");
    expect((await generateText({ model, prompt: "hi" })).text).toBe("Hello, you!");
    expect(await streamText({ model, prompt: "hi" }).text).toBe("Hello, you!");
  });

  it("reads what was wrong", async () => {
    await expect(
      generateText({ model: provider()("talk"), prompt: "hi", temperature: 1000, maxRetries: 0 }),
    ).rejects.toThrow("temperature must be a number from 0 to 100, got 1000");
  });
});
