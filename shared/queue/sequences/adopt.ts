/** The typed wrapper of adopt.lua: lets a sequence continue under another version of its model. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, word } from "../../redis/script.js";
import { pinText, type Pin } from "../address.js";
import { modelTag } from "../keys.js";
import { keysOf, type SequenceAddress } from "./address.js";

const answers = ["adopted", "other"] as const;

const script = defineScript(new URL("./adopt.lua", import.meta.url), (reply) => word(reply, answers), {
  keys: ["sequences"],
  args: ["base", "sequence", "from", "to"],
  durable: true,
});

/**
 * @param from the present pin of the sequence
 * @param to the pin under which it continues; its states must fit
 * @returns `other` if the sequence has neither pin. Safe to repeat.
 */
export function adopt(redis: RedisClient, sequence: SequenceAddress, from: Pin, to: Pin) {
  return script(redis, keysOf(sequence), {
    base: modelTag(sequence),
    sequence: sequence.name,
    from: pinText(from),
    to: pinText(to),
  });
}
