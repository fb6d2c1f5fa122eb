/** A record that only adds a text gives the same bytes with and without parsing. */
import { expect, it } from "vitest";
import { chatRenderer } from "./chat.js";
import { completionRenderer } from "./completions.js";

const texts = ["word", " é 😀", '"\\/\n\u0000\u2028', "\ud83d", " "];

it.each([
  ["a chat", () => chatRenderer(1), 0],
  ["a completion", () => completionRenderer(1, [""]), 0],
  ["the third prompt of a completion of two choices each", () => completionRenderer(2, ["", "", "an echo "]), 2],
])("%s says the same without parsing", (_, make, prompt) => {
  const [parsed, plain] = [make(), make()];
  const record = (text: string) => ({ index: 1, choices: [{ index: 0, text, tokens: [1] }] });
  expect(plain.renderTextChunk('"first"', prompt)).toBeUndefined();
  for (const renderer of [parsed, plain]) renderer.renderChunks(record("first"), prompt);
  for (const text of texts) {
    const [choice] = parsed.renderChunks(record(text), prompt);
    expect(plain.renderTextChunk(JSON.stringify(text), prompt)).toBe(JSON.stringify(choice));
  }
  expect(parsed.renderChunks(record(""), prompt)).toEqual([]);
  expect(plain.renderTextChunk('""', prompt)).toBe("");
});
