/**
 * How a request waits if its lane's ready stream has no room, as parking.lua reads the terms. With
 * room, none of this counts.
 */
import { terms } from "../../records/requests.js";

export interface WaitingTerms {
  /** From 1, which goes first; also 1 if the model has no levels. */
  readonly level: number;
  /**
   * The tenant's share among the tenants of its level, from now on; undefined if the deployment
   * gives no weights, so that each tenant has 1.
   */
  readonly weight: number | undefined;
  /** After so many ms the request goes to the end of its level; undefined: never. */
  readonly delayMs: number | undefined;
  /**
   * The limit of parked requests of this level in the lane, checked at the admission; undefined for
   * no limit.
   */
  readonly mostParked: number | undefined;
}

export const usualTerms: WaitingTerms = { level: 1, weight: undefined, delayMs: undefined, mostParked: undefined };

/** The terms as scripts take them; '' for the usual ones. */
export function termsText({ level, weight, delayMs }: WaitingTerms): string {
  if (level === 1 && weight === undefined && delayMs === undefined) return "";
  return terms.write({ rank: 2 * level, weight: String(weight ?? 1), delay: delayMs ?? 0 });
}
