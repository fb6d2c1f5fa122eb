/** The typed wrapper of admit.lua: the only way into a queue. */
import { defineScript, list, text, bytes, word } from "#shared/redis/script.js";

export type Admission =
  | { readonly said: "admitted" }
  /** Admitted before under the same key. No outcome yet while `outcome` is undefined. */
  | { readonly said: "known"; readonly outcome: { readonly kind: string; readonly body: Buffer } | undefined }
  | { readonly said: "mismatch" | "queue-full" | "start-required" | "backlog-full" | "too-many-sequences" };

const replies = [
  "admitted",
  "known",
  "mismatch",
  "queue-full",
  "start-required",
  "backlog-full",
  "too-many-sequences",
] as const;

export const admit = defineScript<Admission>(new URL("./admit.lua", import.meta.url), (reply) => {
  const [first, kind, body] = list(reply);
  const said = word(first, replies);
  if (said === "admitted") return { said };
  if (said !== "known") return { said };
  return { said, outcome: text(kind) === "" ? undefined : { kind: text(kind), body: bytes(body) } };
});
