/**
 * The typed wrapper of mend-sequence.lua: mends a sequence whose ready entry was deleted from
 * outside.
 */
import { defineScript, list, text, word } from "../../../redis/script.js";
import { parseRequestName, type RequestAddress } from "../../address.js";
import { loadKeyOf } from "../../pieces/load.js";
import { laneKeys, modelTag, waitKey } from "../../keys.js";
import type { LaneQueue } from "../lane.js";

const answers = ["sound", "mended", "gone"] as const;

const script = defineScript(
  new URL("./mend-sequence.lua", import.meta.url),
  (reply) => {
    const [said, request] = list(reply);
    return {
      said: word(said, answers),
      request: request === undefined || request === null ? undefined : text(request),
    };
  },
  { keys: ["live", "waiting", "load"], args: ["sequence", "base"] },
);

/**
 * @param name the sequence's name
 * @returns the request of the lost step, if a step was lost
 */
export async function mendSequence({ redis, lane }: LaneQueue, name: string): Promise<RequestAddress | undefined> {
  const { live } = laneKeys(lane);
  const { bucket, model } = lane;
  const keys = { live, waiting: waitKey(lane, name), load: loadKeyOf(redis, bucket) };
  const { request } = await script(redis, keys, { sequence: name, base: modelTag(lane) });
  return request === undefined ? undefined : { bucket, model, ...parseRequestName(request) };
}
