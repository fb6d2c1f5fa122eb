/** Finds the other lanes in which sequences of a lane's model have their entries. */
import { parsePin, pinText, type Pin } from "../../address.js";
import { readSequences } from "../../pieces/sequence.js";
import type { LaneQueue } from "../lane.js";

/**
 * @param names of sequences in the lane's bucket
 * @returns the pins of those lanes, each once, without the pin of this lane
 */
export async function pinsElsewhere({ redis, lane }: LaneQueue, names: readonly string[]): Promise<Pin[]> {
  const found = await readSequences(redis, lane, names);
  const pins = new Set(found.map((facts) => facts?.on ?? "").filter((pin) => pin !== "" && pin !== pinText(lane)));
  return [...pins].map(parsePin);
}
