/** The typed wrapper of export.lua: reads where a sequence stands, to make another one from it. */
import type { RedisClient } from "../../redis/connect.js";
import { bytes, defineScript, integer, list, text, word } from "../../redis/script.js";
import { parsePin, type Pin } from "../address.js";
import { modelTag } from "../keys.js";
import { keysOf, type SequenceAddress } from "./address.js";

/** A sequence as it can be kept anywhere, and imported again. */
export interface ExportedSequence {
  /** Number of its last step, counted from its START. */
  readonly step: number;
  readonly pin: Pin;
  /** Undefined where it goes on from its initial state. */
  readonly checkpoint: { readonly version: string; readonly frame: Buffer } | undefined;
}

export type Exporting =
  { readonly said: "exported"; readonly sequence: ExportedSequence } | { readonly said: "unknown" | "busy" | "gone" };

const script = defineScript(new URL("./export.lua", import.meta.url), (reply): Exporting => {
  const [first, step, pin, version, checkpoint] = list(reply);
  const said = word(first, ["exported", "unknown", "busy", "gone"]);
  if (said !== "exported") return { said };
  const frame = bytes(checkpoint);
  const sequence = {
    step: integer(step),
    pin: parsePin(text(pin)),
    checkpoint: frame.length === 0 ? undefined : { version: text(version), frame },
  };
  return { said, sequence };
});

export function exportSequence(redis: RedisClient, sequence: SequenceAddress): Promise<Exporting> {
  return script(redis, [keysOf(sequence).seqs], [modelTag(sequence), sequence.name]);
}
