/**
 * What a worker hands to a commit: how a request that it holds ends, and what becomes of its
 * sequence.
 */
import type { StoredOutcome } from "../../contract/outcome.js";
import type { Delivery } from "../entry.js";

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
