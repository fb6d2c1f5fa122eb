/**
 * Calls over NATS that name the lanes in which a dead worker has left entries. In a large fleet,
 * the next beat of a worker that serves such a lane may be most of a lease away. Correctness does
 * not depend on a call. If a call is lost, the next beat has the news; if a call is forged, a beat
 * comes a little early. Even a flood of calls causes only a few beats a second.
 */
import type { Lane } from "#shared/queue/address.js";
import { GRAVES_SUBJECT, laneKeys } from "#shared/queue/keys.js";
import type { Bus } from "#shared/nats/connect.js";

/** Most lanes in a message. The workers of further lanes find the graves with their next beats. */
const MOST_LANES = 1_000;

export function callOut(bus: Pick<Bus, "publish">, lanes: readonly Lane[]): void {
  if (lanes.length === 0) return;
  const keys = lanes.slice(0, MOST_LANES).map((lane) => laneKeys(lane).ready);
  bus.publish(GRAVES_SUBJECT, Buffer.from(keys.join("\n")));
}

/**
 * @param hear called with the keys of ready streams; a forged message may hold any text
 * @returns a function that ends the subscription
 */
export function listenForCalls(
  bus: Pick<Bus, "subscribe">,
  hear: (keys: readonly string[]) => void,
): Promise<() => void> {
  return bus.subscribe(GRAVES_SUBJECT, (message) => hear(message.toString("utf8").split("\n", MOST_LANES)));
}
