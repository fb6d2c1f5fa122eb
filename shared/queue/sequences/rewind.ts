/** The typed wrapper of rewind.lua: takes an idle sequence back to an earlier step. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, word } from "../../redis/script.js";
import { modelTag } from "../keys.js";
import { keysOf, type SequenceAddress } from "./address.js";
import { onceArgs, type Once } from "./once.js";
import { viewOf, type SequenceView } from "./view.js";

export type Rewinding =
  /**
   * The view of the sequence. After `rewound`, its next step is the step after the checkpoint's.
   */
  | { readonly said: "rewound" | "busy" | "future" | "gone"; readonly view: SequenceView }
  | { readonly said: "unknown" | "mismatch" };

const script = defineScript(
  new URL("./rewind.lua", import.meta.url),
  (reply): Rewinding => {
    const [first, view] = list(reply);
    if (view !== undefined) return { said: word(first, ["rewound", "busy", "future", "gone"]), view: viewOf(view) };
    return { said: word(first, ["unknown", "mismatch"]) };
  },
  {
    keys: ["sequences", "live"],
    args: ["base", "sequence", "step", "idle", "record", "digest", "ttl"],
    durable: true,
  },
);

/**
 * @param step the step's number, counted from the sequence's START, which is 1
 * @param maxIdleMs how long the model's sequences live between their steps
 * @returns Safe to repeat until the sequence's next step, and under `once` for ever.
 */
export function rewind(
  redis: RedisClient,
  sequence: SequenceAddress,
  step: number,
  maxIdleMs: number,
  once?: Once,
): Promise<Rewinding> {
  return script(redis, keysOf(sequence), {
    base: modelTag(sequence),
    sequence: sequence.name,
    step,
    idle: maxIdleMs,
    ...onceArgs(sequence, once),
  });
}
