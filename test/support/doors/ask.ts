/** A request with its right outcomes, and the outcome of an attempt, as a history keeps them. */
import type { ErrorCode } from "#shared/errors.js";

/** A request. All attempts of a request have the same ask. */
export interface Ask {
  /** The `Idempotency-Key` and the body's `id`, unique in a history. */
  readonly request: string;
  readonly model: string;
  /** The tenant of the request, if clients name a tenant; else absent for the default tenant. */
  readonly tenant?: string;
  /** The label of the sequence; absent for a stateless request. */
  readonly sequence?: string;
  /** Counted from 1, in the order in which the client asks. */
  readonly step?: number;
  /** A client sends the steps of a burst at the same time, so any order among them is right. */
  readonly burst?: number;
  /** The input of a chain model. */
  readonly input?: bigint;
  /** The only right output, if the output depends on the request alone. */
  readonly answer?: string;
  readonly start?: boolean;
  readonly end?: boolean;
  /**
   * The error code that is the right outcome of poison, and of the step after poison. If absent, a
   * result is right.
   */
  readonly expects?: ErrorCode;
  /**
   * Errors that are right outcomes, too, if the request then has had no effect: its deadline is
   * short, or the queue of its level.
   */
  readonly mayFail?: readonly ErrorCode[];
  /** The request names the number of its step, so steps of a burst take effect in their order. */
  readonly numbered?: true;
  /** The request has no key, so its client cannot ask again for an outcome that did not arrive. */
  readonly unkeyed?: true;
}

/** @param said an error's code, or `ok` */
export function isRight({ expects, mayFail }: Ask, said: string): boolean {
  return said === (expects ?? "ok") || (mayFail as readonly string[] | undefined)?.includes(said) === true;
}

export type Ending =
  | {
      readonly kind: "ok";
      readonly output: string;
      readonly echoedId: string | undefined;
      /** The version of the model that answered, if the answer names a version. */
      readonly version?: string;
    }
  | {
      readonly kind: "fail";
      readonly status: number;
      readonly code: string;
      /** No gateway took the request, and its client leaves it at that. */
      readonly refused?: true;
    }
  | {
      readonly kind: "unknown";
      readonly why: string;
      /** The error of a gateway that did not take the request. */
      readonly refusal?: ErrorCode;
    };
