/**
 * OpenAI's own client and Vercel's AI SDK, unmodified, against a whole fleet with the demo model.
 */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";
import OpenAI from "openai";
import { beforeAll, describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";

const prompt = "Write a short story about a cat who discovers a secret portal.";
const model = "tale-gpt";
const messages = [{ role: "user" as const, content: prompt }];

describe("real clients of a real fleet", () => {
  const served = useFleet({ workers: 2, models: [model] });
  let openai: OpenAI;
  beforeAll(() => {
    openai = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: "none" });
  });

  it("OpenAI's client streams a chat and a completion, and gets the same text whole", async () => {
    const settings = { model, messages, temperature: 0.7, seed: 11 };
    let streamed = "";
    let chunks = 0;
    for await (const { choices } of await openai.chat.completions.create({ ...settings, stream: true })) {
      streamed += choices[0]?.delta.content ?? "";
      chunks++;
    }
    const whole = await openai.chat.completions.create(settings);
    expect(chunks).toBeGreaterThan(20);
    expect(streamed).toBe(whole.choices[0]?.message.content);
    expect(whole.choices[0]?.finish_reason).toBe("stop");
    expect(streamed).toMatch(/\bcat\b/i);
    expect(streamed).toMatch(/\bportal\b/i);

    let completed = "";
    for await (const { choices } of await openai.completions.create({
      model,
      prompt,
      max_tokens: 120,
      seed: 4,
      stream: true,
    })) {
      completed += choices[0]?.text ?? "";
    }
    expect(completed).toMatch(/\bcat\b/i);
  });

  it("the AI SDK streams and generates", async () => {
    const provider = createOpenAICompatible({ name: "baton", baseURL: `${served.url}/v1` });
    const asked = { model: provider(model), prompt, temperature: 0.7, seed: 11 };
    const { textStream } = streamText(asked);
    let streamed = "";
    for await (const text of textStream) streamed += text;
    const { text, finishReason } = await generateText(asked);
    expect(streamed).toBe(text);
    expect(finishReason).toBe("stop");
    expect(streamed).toMatch(/\bportal\b/i);
  });
});
