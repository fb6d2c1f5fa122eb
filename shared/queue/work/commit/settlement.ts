/**
 * The input of a commit: how a request that a worker holds ends, and the new state of its sequence.
 */
import type { StoredOutcome } from "../../../contract/outcome.js";
import { outcome as outcomeRecord } from "../../../records/requests.js";
import type { Call } from "../../../redis/transaction.js";
import { pinText } from "../../address.js";
import type { Delivery } from "../../entry.js";
import { outcomeKey } from "../../keys.js";

/**
 * The change of the sequence's checkpoint.
 *
 * - `put`: the sequence continues from the new checkpoint
 * - `keep`: the step has no effect; the sequence continues from its earlier checkpoint
 * - `drop`: the sequence continues from its initial state
 * - `fail`: the sequence is over: its state is gone, and Baton refuses its steps until a START
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
  /** Why the worker sets the request aside, or undefined. */
  readonly deadReason: string | undefined;
  /** What the run took (`spent` in records/usage.ts); absent if nobody counts it. */
  readonly spent?: string | undefined;
}

/**
 * The answers of commit-steps.lua and commit-requests.lua; the head of commit-steps.lua explains
 * the words.
 */
export const fates = ["committed", "superseded", "already", "lost"] as const;
export type Fate = (typeof fates)[number];

/**
 * In bytes. Longer bodies do not pass through the script, because Lua copies and reads every byte.
 */
const INLINE_BYTES = 1_024;
/** A time that the script fills in. */
const LATER = 0;
/** Counts the calls of this process, so that each call writes bodies to keys of its own. */
let calls = 0;

/** As commit-steps.lua and commit-requests.lua name the arguments. */
export interface OutcomeArgs {
  readonly kind: string;
  readonly body: Buffer | string;
  /** In ms. */
  readonly ttl: number;
  readonly apart: string;
}

/** A settlement, and the arguments for its outcome. */
export interface Given<S> {
  readonly settlement: S;
  readonly outcome: OutcomeArgs;
}

/**
 * How a call passes outcomes to the script. The transaction writes long outcomes of brief requests
 * before the script, to keys of their own; a key that the script does not take has a TTL.
 */
export interface GivenOutcomes<S> {
  readonly given: readonly Given<S>[];
  /** The commands before the script in its transaction. */
  readonly ahead: readonly Call[];
}

/** @param consumer names this worker's process */
export function givenOutcomes<S extends Settlement>(settlements: readonly S[], consumer: string): GivenOutcomes<S> {
  const apart = `${consumer}.${calls++}`;
  const ahead: Call[] = [];
  const given = settlements.map((settlement) => {
    const { delivery, outcome } = settlement;
    const { kind, body } = outcome;
    const { brief, outcomeTtlMs, lane, gateway } = delivery;
    if (!brief || body.length <= INLINE_BYTES) return inlineOutcome(settlement);
    const head = Buffer.from(
      outcomeRecord.write({ ended: LATER, at: LATER, kind, pin: pinText(lane), gateway, body: "" }),
    );
    const key = `${outcomeKey(delivery)}@${apart}`;
    ahead.push(["SET", key, Buffer.concat([head, body]), "PX", outcomeTtlMs]);
    return { settlement, outcome: { kind, body: "", ttl: outcomeTtlMs, apart } };
  });
  return { given, ahead };
}

/**
 * The same while Redis is full and takes no writes before the script: all bodies pass through it.
 */
export function inlineOutcomes<S extends Settlement>(settlements: readonly S[]): GivenOutcomes<S> {
  return { given: settlements.map(inlineOutcome), ahead: [] };
}

function inlineOutcome<S extends Settlement>(settlement: S): Given<S> {
  const { delivery, outcome } = settlement;
  const { kind, body } = outcome;
  return { settlement, outcome: { kind, body, ttl: delivery.outcomeTtlMs, apart: "" } };
}
