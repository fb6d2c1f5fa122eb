/**
 * Announces what requests pass on their way through the fleet, on a channel of
 * `node:diagnostics_channel`. Nothing in the product listens (`test/bench/stages` does), and
 * without a listener an announcement costs a comparison.
 */
import { channel } from "node:diagnostics_channel";

/** In the order of a step's way. */
export const stages = [
  /** The gateway has read and checked the request. */
  "checked",
  /** The gateway sends the admission call. */
  "called",
  /** Redis has answered that call. */
  "admitted",
  /** The worker has the entry. */
  "taken",
  /** The worker has closed the batch. */
  "batched",
  /** The model's thread has the batch. */
  "posted",
  /** The worker's main thread has the outputs. */
  "ran",
  /** The worker sends the commit. */
  "settled",
  /** Redis has answered the commit. */
  "committed",
  /** The gateway has the reply. */
  "replied",
] as const;

export type RequestStage = (typeof stages)[number];

export interface Passed {
  readonly stage: RequestStage;
  /** Names of the requests, from `requestName`. */
  readonly requests: readonly string[];
  /** How long the model ran, in ms, at the stage `ran`. */
  readonly ranMs?: number | undefined;
}

/** The name of the channel, whose messages are `Passed`. */
export const STAGES_CHANNEL = "baton:stages";

const listeners = channel(STAGES_CHANNEL);

/** @param nameOf gives the name of a request, from `requestName` */
export function passed<T>(stage: RequestStage, items: readonly T[], nameOf: (item: T) => string, ranMs?: number): void {
  if (!listeners.hasSubscribers) return;
  listeners.publish({ stage, requests: items.map(nameOf), ranMs } satisfies Passed);
}
