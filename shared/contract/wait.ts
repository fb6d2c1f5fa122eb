/**
 * How long a request may wait, in the metadata of its frame. Redis's time at the deadline less this
 * length is the time of the admission, so a worker needs no clock of another machine for it.
 */
import type { FrameMeta } from "../frame.js";

/** @param ms from the admission to the deadline */
export function waitMeta(ms: number): FrameMeta {
  return { wait: ms };
}

/** @returns undefined for a request of a gateway that does not say so */
export function waitOf(meta: FrameMeta): number | undefined {
  const ms = meta["wait"];
  return typeof ms === "number" ? ms : undefined;
}
