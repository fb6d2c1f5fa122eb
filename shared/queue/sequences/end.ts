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
  {
    keys: ["sequences", "live"],
    args: ["base", "sequence", "record", "digest", "ttl"],
    durable: true,
  },
);

/** Steps that were admitted before run to their end. */
export function endSequence(redis: RedisClient, sequence: SequenceAddress, once?: Once): Promise<Ending> {
  return script(redis, keysOf(sequence), {
    base: modelTag(sequence),
    sequence: sequence.name,
    ...onceArgs(sequence, once),
  });
}
