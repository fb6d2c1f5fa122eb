/** The typed wrapper of end.lua: ends a sequence. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, word } from "../../redis/script.js";
import { modelTag } from "../keys.js";
import { keysOf, type SequenceAddress } from "./address.js";
import { onceArgs, type Once } from "./once.js";
import { viewOf, type SequenceView } from "./view.js";

export type Ending =
  { readonly said: "ended"; readonly view: SequenceView } | { readonly said: "unknown" | "mismatch" };

const script = defineScript(
  new URL("./end.lua", import.meta.url),
  (reply): Ending => {
    const [first, view] = list(reply);
    const said = word(first, ["ended", "unknown", "mismatch"]);
    return said === "ended" ? { said, view: viewOf(view) } : { said };
  },
  { durable: true },
);

/** Steps that were admitted before run to their end. */
export function endSequence(redis: RedisClient, sequence: SequenceAddress, once?: Once): Promise<Ending> {
  const { seqs, live } = keysOf(sequence);
  return script(redis, [seqs, live], [modelTag(sequence), sequence.name, ...onceArgs(sequence, once)]);
}
