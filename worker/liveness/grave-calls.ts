/**
 * Who buries a worker calls out over NATS in which lanes it has left entries: in a large fleet the
 * next beat of a worker that serves one of them may be most of a lease away. Nothing depends on a
 * call. Where it is lost the next beat tells, and where it is forged a beat is a little early: even
 * a flood of calls is followed by only a few beats a second.
 */
import type { Lane } from "#shared/queue/address.js";
import { GRAVES_SUBJECT, laneKeys } from "#shared/queue/keys.js";
import type { Bus } from "#shared/nats/connect.js";

/** A message names at most so many lanes; who is in need of more is soon told by a beat. */
const MOST_LANES = 1_000;

export function callOut(bus: Pick<Bus, "publish">, lanes: readonly Lane[]): void {
  if (lanes.length === 0) return;
  const keys = lanes.slice(0, MOST_LANES).map((lane) => laneKeys(lane).ready);
  bus.publish(GRAVES_SUBJECT, Buffer.from(keys.join("\n")));
}

/**
 * @param hear is given the keys of ready streams, or whatever else somebody has sent
 * @returns a function that ends it
 */
export function listenForCalls(
  bus: Pick<Bus, "subscribe">,
  hear: (keys: readonly string[]) => void,
): Promise<() => void> {
  return bus.subscribe(GRAVES_SUBJECT, (message) => hear(message.toString("utf8").split("\n", MOST_LANES)));
}
