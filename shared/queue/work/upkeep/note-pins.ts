/** The typed wrapper of note-pins.lua: notes the pins that a worker serves. */
import type { RedisClient } from "../../../redis/connect.js";
import { defineScript, integer } from "../../../redis/script.js";
import { registryKeys } from "../../keys.js";
import { pinField, pinValue, type ServedPin } from "../../pins.js";

const script = defineScript(new URL("./note-pins.lua", import.meta.url), integer, {
  keys: ["pins"],
  args: [{ pins: ["field", "value"] }],
});

/** Safe to repeat. A worker calls this after its announcement. */
export async function notePins(redis: RedisClient, pins: readonly ServedPin[]): Promise<void> {
  const entries = pins.map((pin) => ({ field: pinField(pin), value: pinValue(pin) }));
  if (entries.length > 0) await script(redis, registryKeys, { pins: entries });
}
