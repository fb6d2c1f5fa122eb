/** The typed wrapper of recall.lua: looks whether a change was made under its Idempotency-Key. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list } from "../../redis/script.js";
import type { SequenceAddress } from "./address.js";
import { recordKey, type Once } from "./once.js";
import { viewOf, type SequenceView } from "./view.js";

export type Recalled = { readonly said: "new" | "mismatch" } | { readonly said: "made"; readonly view: SequenceView };

const script = defineScript(
  new URL("./recall.lua", import.meta.url),
  (reply): Recalled => {
    const [first, view] = list(reply);
    if (first === undefined) return { said: "new" };
    return view === undefined ? { said: "mismatch" } : { said: "made", view: viewOf(view) };
  },
  { keys: ["record"], args: ["digest"], durable: true },
);

/** @param at the sequence at which the record lies */
export function recall(redis: RedisClient, at: SequenceAddress, once: Once): Promise<Recalled> {
  return script(redis, { record: recordKey(at, once) }, { digest: once.digest });
}
