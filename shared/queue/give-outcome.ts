/** The typed wrapper of give-outcome.lua: ends a request without running it: its deadline passed, or its step is gone. */
import { bytes, defineScript, list, text, word } from "#shared/redis/script.js";

export type Given =
  | { readonly said: "given" | "sealed" | "unknown" }
  | { readonly said: "known"; readonly outcome: { readonly kind: string; readonly body: Buffer } };

export const giveOutcome = defineScript<Given>(new URL("./give-outcome.lua", import.meta.url), (reply) => {
  const [first, kind, body] = list(reply);
  const said = word(first, ["given", "known", "sealed", "unknown"]);
  return said === "known" ? { said, outcome: { kind: text(kind), body: bytes(body) } } : { said };
});
