/**
 * How often a key may call this gateway without admitting anything: status, lists, administration.
 * Such calls cost Redis or memory, too, and no limit of admissions counts them. Each gateway counts
 * by itself, in memory (GCRA, as rates.ts describes it).
 */
import { errorKinds, InferenceError } from "#shared/errors.js";
import { realWorld, type World } from "#shared/world.js";
import { durationText } from "../admission/budget.js";
import type { Owner } from "./owner/owner.js";
import { remember } from "./owner/remember.js";

export interface CallRatesSettings {
  /** Calls per second (`BATON_CALLS_PER_SECOND`). */
  readonly perSecond: number;
  /** Calls that a rested key may make at once (`BATON_CALLS_BURST`). */
  readonly burst: number;
  readonly world?: World;
}

/** Most keys to count; beyond it, the key that called the longest ago begins anew. */
const MOST = 20_000;

export class CallRates {
  readonly #settings: CallRatesSettings;
  readonly #world: World;
  /** By key, when it is rested, on the world's clock. */
  readonly #rested = new Map<string, number>();

  constructor(settings: CallRatesSettings) {
    this.#settings = settings;
    this.#world = settings.world ?? realWorld;
  }

  /**
   * Counts a call. A call that is refused costs nothing.
   * @throws InferenceError `rate_limit_exceeded`
   */
  take({ keyId }: Owner): void {
    if (keyId === undefined) return;
    const { perSecond, burst } = this.#settings;
    const periodMs = 1_000 / perSecond;
    const now = this.#world.now();
    const rested = Math.max(this.#rested.get(keyId) ?? now, now) + periodMs;
    const waitMs = Math.ceil(rested - now - burst * periodMs);
    if (waitMs > 0) throw exceeded(perSecond, burst, waitMs);
    remember(this.#rested, keyId, rested, MOST);
  }
}

function exceeded(perSecond: number, burst: number, waitMs: number): InferenceError {
  const { usual } = errorKinds.rate_limit_exceeded.texts;
  const message = `${usual} calls per second: limit ${perSecond}, burst ${burst}. Please try again in ${durationText(waitMs)}.`;
  return new InferenceError("rate_limit_exceeded", message, {
    limited: { limit: "calls_per_second", scope: "key", waitMs },
  });
}
