/** A generator's streams are spread over buckets, and each stream is answered in any bucket. */
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { buckets } from "./settings.js";

describe("a generator over several buckets", () => {
  const served = useFleet({ workers: 2, models: ["gen-cheap"], env: buckets(16) });

  async function generate(prompt: string): Promise<{ status: number; text: string }> {
    const answer = await fetch(`${served.url}/v2/models/gen-cheap/generate`, {
      method: "POST",
      body: JSON.stringify({ text_input: prompt, max_tokens: 16, temperature: 0 }),
      signal: AbortSignal.timeout(25_000),
    });
    const body = (await answer.json()) as { text_output?: string; error?: string };
    return { status: answer.status, text: body.text_output ?? body.error ?? "" };
  }

  it("answers streams that run at the same time, each as if it were alone", { timeout: 90_000 }, async () => {
    const prompts = Array.from({ length: 8 }, (_, i) => `stream ${i}`);
    const together = await Promise.all(prompts.map(generate));
    expect(together.map(({ status }) => status)).toEqual(prompts.map(() => 200));
    const alone = [];
    for (const prompt of prompts) alone.push(await generate(prompt));
    expect(together).toEqual(alone);
  });

  it("answers many prompts of one request, and Node warns of nothing", { timeout: 90_000 }, async () => {
    const prompt = Array.from({ length: 12 }, (_, i) => `prompt ${i}`);
    const answers = [false, true].map(async (stream) => {
      const body = JSON.stringify({ model: "gen-cheap", prompt, max_tokens: 4, stream });
      const answer = await fetch(`${served.url}/v1/completions`, { method: "POST", body });
      const text = await answer.text();
      return [answer.status, new Set([...text.matchAll(/"index":(\d+)/g)].map(([, index]) => index)).size];
    });
    expect(await Promise.all(answers)).toEqual([
      [200, prompt.length],
      [200, prompt.length],
    ]);
    const members = [...served.fleet.gateways.map(({ member }) => member), ...served.fleet.workers];
    const lines = members.flatMap(({ lives }) => lives.flatMap((life) => life.lines.map(({ text }) => text)));
    expect(lines.filter((text) => /^\(node:\d+\)/.test(text))).toEqual([]);
  });
});
