import { describe, expect, it } from "vitest";
import type { PromptSpec } from "#shared/contract/generation.js";
import { checkBounds } from "./bounds.js";

const chat = (content: unknown, calls?: unknown[]): PromptSpec => ({
  kind: "chat",
  messages: [{ role: "user", content, ...(calls !== undefined && { tool_calls: calls }) }],
  addGenerationPrompt: true,
});

function nested(depth: number): unknown {
  let value: unknown = "x";
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { value };
  return value;
}

const mebi = 2 ** 20;

const ones = (length: number): number[] => Array.from({ length }, () => 1);

describe("checkBounds", () => {
  it.each<[what: string, prompt: PromptSpec]>([
    ["a megabyte of text", { kind: "text", text: "é".repeat(mebi / 2) }],
    ["many tokens", { kind: "tokens", tokens: ones(mebi) }],
    ["a conversation", chat("x".repeat(mebi - 100))],
    ["some depth", chat("x", [nested(20)])],
  ])("takes %s", (_, prompt) => {
    expect(() => checkBounds(prompt)).not.toThrow();
  });

  it.each<[what: string, prompt: PromptSpec, error: string]>([
    ["more text", { kind: "text", text: `${"é".repeat(mebi / 2)}x` }, "the prompt is larger than 1048576 bytes"],
    ["more tokens", { kind: "tokens", tokens: ones(mebi + 1) }, "the prompt has more than 1048576 tokens"],
    ["a large message", chat("x".repeat(mebi)), "the prompt is larger than 1048576 bytes"],
    ["a large key", chat("x", [{ ["k".repeat(mebi)]: 1 }]), "the prompt is larger than 1048576 bytes"],
    ["a million numbers", chat("x", [ones(mebi)]), "the prompt is larger than 1048576 bytes"],
    ["depth", chat("x", [nested(100_000)]), "the prompt is nested too deeply"],
  ])("refuses %s", (_, prompt, error) => {
    expect(() => checkBounds(prompt)).toThrow(error);
  });
});
