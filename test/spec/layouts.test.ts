/**
 * The fleet serves model folders of other exports than the demo model's, and names the folders that
 * cannot be served.
 */
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";

const layouts = [
  "gen-mha",
  "gen-gqa-nopos",
  "gen-mqa-fp16",
  "gen-relative",
  "gen-logits-to-keep",
  "gen-quantized",
  "gen-cheap",
];
const broken = {
  "gen-no-tokenizer": /'tokenizer.json' does not exist/,
  "gen-bad-template": /chat template/,
  "gen-missing-past": /past_key_values/,
  "gen-vocab-mismatch": /300 tokens.*320/,
};

interface Completion {
  readonly choices: readonly { readonly text: string; readonly finish_reason: string }[];
  readonly usage: { readonly completion_tokens: number };
}

describe("generators of other exports", () => {
  const served = useFleet({ models: [...layouts, ...Object.keys(broken)], serving: layouts });

  async function complete(model: string, prompt: string): Promise<Completion> {
    const answer = await fetch(`${served.url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model, prompt, max_tokens: 24, temperature: 0, ignore_eos: true }),
    });
    expect(answer.status).toBe(200);
    return (await answer.json()) as Completion;
  }

  it.each(layouts)("%s answers, alone as among others", async (model) => {
    const prompts = ["the", "a longer prompt than the first", "x".repeat(70), "the other"];
    const alone: Completion[] = [];
    for (const prompt of prompts) alone.push(await complete(model, prompt));
    for (const { choices, usage } of alone) {
      expect(usage.completion_tokens).toBe(24);
      expect(choices[0]?.text).not.toBe("");
      expect(choices[0]?.finish_reason).toBe("length");
    }
    const together = await Promise.all(prompts.map((prompt) => complete(model, prompt)));
    // A quantised model has one scale for the whole batch's activations, so its answers depend on
    // the other rows.
    if (model === "gen-quantized") return;
    expect(together.map(({ choices }) => choices)).toEqual(alone.map(({ choices }) => choices));
  });

  it("names what cannot be served, and why", async () => {
    const shown = (await (await fetch(`${served.url}/v2/fleet`)).json()) as {
      workers: { failed: { name: string; reason: string }[] }[];
    };
    const reasons = new Map(shown.workers.flatMap(({ failed }) => failed).map(({ name, reason }) => [name, reason]));
    for (const [name, reason] of Object.entries(broken)) expect(reasons.get(name)).toMatch(reason);
    const answer = await fetch(`${served.url}/v1/completions`, {
      method: "POST",
      body: JSON.stringify({ model: "gen-missing-past", prompt: "x" }),
    });
    expect(answer.status).toBe(404);
  });
});
