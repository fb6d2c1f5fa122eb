/** The typed wrapper of expire.lua: ends a request whose deadline passed while its gateway waited. */
import { bytes, defineScript, list, text, word } from "#shared/redis/script.js";

export type Expiry =
  | { readonly said: "expired" | "unknown" }
  | { readonly said: "known"; readonly outcome: { readonly kind: string; readonly body: Buffer } };

export const expire = defineScript<Expiry>(new URL("./expire.lua", import.meta.url), (reply) => {
  const [first, kind, body] = list(reply);
  const said = word(first, ["expired", "known", "unknown"]);
  return said === "known" ? { said, outcome: { kind: text(kind), body: bytes(body) } } : { said };
});
