/** The typed wrapper of rewind.lua: takes an idle sequence back to an earlier step. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, word } from "../../redis/script.js";
import { modelTag } from "../keys.js";
import { keysOf, type SequenceAddress } from "./address.js";

export type Rewinding =
  /** The sequence's next step is the one after that. */
  | { readonly said: "rewound" | "unknown" | "busy" }
  /** The numbers of the steps whose checkpoints are kept; 0 stands for none. */
  | { readonly said: "not-kept"; readonly oldest: number; readonly newest: number };

const script = defineScript(
  new URL("./rewind.lua", import.meta.url),
  (reply): Rewinding => {
    const [first, oldest, newest] = list(reply);
    const said = word(first, ["rewound", "unknown", "busy", "not-kept"]);
    return said === "not-kept" ? { said, oldest: integer(oldest), newest: integer(newest) } : { said };
  },
  { durable: true },
);

/**
 * @param step its number, counted from the sequence's START, which is 1
 * @param maxIdleMs how long the model's sequences are kept between their steps
 * @returns Safe to repeat until the sequence's next step.
 */
export function rewind(
  redis: RedisClient,
  sequence: SequenceAddress,
  step: number,
  maxIdleMs: number,
): Promise<Rewinding> {
  const { seqs, live } = keysOf(sequence);
  return script(redis, [seqs, live], [modelTag(sequence), sequence.name, step, maxIdleMs]);
}
