/**
 * What a worker hands to a commit: how a request that it holds ends, and what becomes of its
 * sequence.
 */
import type { StoredOutcome } from "../../contract/outcome.js";
import type { Arg, Call } from "../../redis/transaction.js";
import { pinText } from "../address.js";
import type { Delivery } from "../entry.js";
import { outcomeKey } from "../keys.js";

/**
 * What becomes of the sequence's checkpoint.
 *
 * - `put`: the new checkpoint is stored
 * - `keep`: the step had no effect; the sequence goes on from the checkpoint that it has
 * - `drop`: the sequence goes on from its initial state
 * - `fail`: the sequence is over: its state is gone, and steps are refused until one with START
 */
export type StateChange =
  | {
      readonly action: "put";
      /** Names this run of the step; no other run writes under this name. */
      readonly version: string;
      readonly checkpoint: Buffer;
    }
  | { readonly action: "keep" | "drop" | "fail" };

export interface Settlement {
  readonly delivery: Delivery;
  readonly outcome: StoredOutcome;
  /** Ignored for stateless requests. */
  readonly state: StateChange;
  /** Why the request is set aside, or undefined. */
  readonly deadReason: string | undefined;
}

/**
 * The answers of commit-steps.lua and commit-requests.lua; the head of the former explains them.
 */
export const fates = ["committed", "superseded", "already", "lost"] as const;
export type Fate = (typeof fates)[number];

/** In bytes. Longer bodies do not go through the script, since Lua copies and reads every byte. */
const INLINE_BYTES = 1_024;
/** A time of 13 digits that the script fills in. */
const LATER = "0".repeat(13);
/** Counts the calls of this process, so that each writes bodies to keys of its own. */
let calls = 0;

/**
 * How the script is given the outcomes of one call. Long ones of brief requests are written ahead
 * of it, to places of their own; what it does not take from there has a TTL.
 */
export interface GivenOutcomes {
  /** Kind, body, TTL and place of each settlement's outcome. */
  readonly args: readonly Arg[][];
  /** What goes ahead of the script in its transaction. */
  readonly ahead: readonly Call[];
}

/** @param consumer names this worker's process */
export function givenOutcomes(settlements: readonly Settlement[], consumer: string): GivenOutcomes {
  const apart = `${consumer}.${calls++}`;
  const ahead: Call[] = [];
  const args = settlements.map(({ delivery, outcome: { kind, body } }): Arg[] => {
    const { brief, outcomeTtlMs, lane, gateway } = delivery;
    if (!brief || body.length <= INLINE_BYTES) return [kind, body, outcomeTtlMs, ""];
    const head = Buffer.from(`${LATER}|${LATER}|${kind}|${pinText(lane)}|${gateway}\n`);
    const key = `${outcomeKey(delivery)}@${apart}`;
    ahead.push(["SET", key, Buffer.concat([head, body]), "PX", outcomeTtlMs]);
    return [kind, "", outcomeTtlMs, apart];
  });
  return { args, ahead };
}

/**
 * The same while Redis is full and takes no writes ahead of the script: all bodies go through it.
 */
export function inlineOutcomes(settlements: readonly Settlement[]): GivenOutcomes {
  const args = settlements.map(({ delivery, outcome }) => [outcome.kind, outcome.body, delivery.outcomeTtlMs, ""]);
  return { args, ahead: [] };
}
