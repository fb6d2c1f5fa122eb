/** The typed wrapper of describe.lua: describes a sequence, and finds one of its checkpoints. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text, word } from "../../redis/script.js";
import { modelTag } from "../keys.js";
import { keysOf, type SequenceAddress } from "./address.js";
import { viewOf, type SequenceView } from "./view.js";

export type Describing =
  /** There is no such sequence, or it is over. */
  | { readonly said: "unknown" }
  /**
   * The checkpoint: its step, counted from the START, and its version, "" for the initial state.
   */
  | { readonly said: "kept"; readonly view: SequenceView; readonly step: number; readonly version: string }
  /**
   * No step has ended yet; or the sequence has not come so far; or Redis no longer has the
   * checkpoint.
   */
  | { readonly said: "busy" | "future" | "gone"; readonly view: SequenceView };

const script = defineScript(
  new URL("./describe.lua", import.meta.url),
  (reply): Describing => {
    const [first, view, step, version] = list(reply);
    const said = word(first, ["unknown", "kept", "busy", "future", "gone"]);
    if (said === "unknown") return { said };
    if (said !== "kept") return { said, view: viewOf(view) };
    return { said, view: viewOf(view), step: integer(step), version: text(version) };
  },
  {
    keys: ["sequences"],
    args: ["base", "sequence", "step"],
    durable: true,
  },
);

/** @param step counted from the START; undefined for the last step */
export function describeSequence(redis: RedisClient, sequence: SequenceAddress, step?: number): Promise<Describing> {
  return script(redis, keysOf(sequence), { base: modelTag(sequence), sequence: sequence.name, step: step ?? "" });
}
