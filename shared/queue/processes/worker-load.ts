/**
 * What a worker uses and does now, for people who look. A beat brings it every few seconds, and
 * Redis writes it to no file. Gateways and jobs processes have theirs in their notes.
 */
import { z } from "zod";
import { processLoad } from "./load-meter.js";

const schema = processLoad.extend({
  /** From a beat until the worker counts as dead, in ms. */
  leaseMs: z.number(),
  /** Committed results, and tokens of generators. */
  stepsPerSecond: z.number(),
  tokensPerSecond: z.number(),
  /** The part of the time in which a model ran, at most 1. */
  busyRatio: z.number(),
  /** Requests that the worker holds. */
  held: z.number(),
  /** Bytes of states and of generators' keys and values in memory, by `model/version`; else 0. */
  cached: z.record(z.string(), z.number()),
});

export type WorkerLoad = Readonly<z.infer<typeof schema>>;

export function writeLoad(load: WorkerLoad): string {
  return JSON.stringify(load);
}

/** @returns undefined for any other text, as from a worker of the version before */
export function readLoad(text: string): WorkerLoad | undefined {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
