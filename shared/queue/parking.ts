/**
 * How a request waits where its lane's ready stream has no room for it, as parking.lua reads it.
 * Where there is room, none of this counts.
 */

export interface WaitingTerms {
  /** From 1, which goes first; 1 as well where the model has no levels. */
  readonly level: number;
  /**
   * The tenant's share among the tenants of its level, from now on; undefined where the deployment
   * gives no weights, so that each tenant has 1.
   */
  readonly weight: number | undefined;
  /**
   * After so many ms it goes behind all others of its level; undefined where it keeps its place.
   */
  readonly delayMs: number | undefined;
  /**
   * Most requests of its level that may be parked in a lane when it comes; undefined for no limit.
   */
  readonly mostParked: number | undefined;
}

export const usualTerms: WaitingTerms = { level: 1, weight: undefined, delayMs: undefined, mostParked: undefined };

/** The terms as scripts take them; '' for the usual ones. */
export function termsText({ level, weight, delayMs }: WaitingTerms): string {
  if (level === 1 && weight === undefined && delayMs === undefined) return "";
  return `${2 * level}|${weight ?? 1}|${delayMs ?? 0}`;
}
