/** A record that only says a text becomes the very bytes that it would have become if it had been parsed. */
import { expect, it } from "vitest";
import { chatWording } from "./render-chat.js";
import { completionWording } from "./render-completion.js";

const texts = ["word", " é 😀", '"\\/\n\u0000\u2028', "\ud83d", " "];

it.each([
  ["a chat", () => chatWording(1), 0],
  ["a completion", () => completionWording(1, [""]), 0],
  ["the third prompt of a completion of two choices each", () => completionWording(2, ["", "", "an echo "]), 2],
])("%s says the same without parsing", (_, make, prompt) => {
  const [parsed, plain] = [make(), make()];
  const record = (text: string) => ({ index: 1, choices: [{ index: 0, text, tokens: [1] }] });
  expect(plain.plainChoice('"first"', prompt)).toBeUndefined();
  for (const wording of [parsed, plain]) wording.chunkChoices(record("first"), prompt);
  for (const text of texts) {
    const [choice] = parsed.chunkChoices(record(text), prompt);
    expect(plain.plainChoice(JSON.stringify(text), prompt)).toBe(JSON.stringify(choice));
  }
  expect(parsed.chunkChoices(record(""), prompt)).toEqual([]);
  expect(plain.plainChoice('""', prompt)).toBe("");
});
