/**
 * How often an owner's requests may be admitted: the generic cell rate algorithm (GCRA), in the
 * form that limits.lua runs. A rested owner may send `burst` requests at once, and then one in each
 * period. The state of a rate is one time, the time at which the owner is rested again.
 */
import { integer, text } from "../../redis/script.js";

/** A rate that a request counts in. */
export interface Rate {
  /** Names the rate for ever: `k:` and a key's id, or `t:` and a tenant. */
  readonly name: string;
  /** Whole µs after which the owner may send another request. */
  readonly periodUs: number;
  /** How many requests a rested owner may send at once, from 1. */
  readonly burst: number;
}

/** The tokens that a generation costs when it is admitted. It gets back those it has not used. */
export interface TokenCharge {
  /** The most that it may use. */
  readonly cost: number;
  /** The part for its prompt. */
  readonly prompt: number;
  /** How many choices it makes, each with a token in a record of its log at most. */
  readonly choices: number;
}

/** A rate of a request: of requests, unless it has a charge. Then it is a rate of tokens. */
export interface ChargedRate extends Rate {
  readonly charge?: TokenCharge | undefined;
}

/** How a rate stood after a request that counts in it. */
export interface RateStanding {
  readonly name: string;
  /** How many requests or tokens more the owner may send at once. */
  readonly remaining: number;
  /** µs until the owner is rested. */
  readonly resetUs: number;
}

/** A rate of a call, with the numbers of its requests, from 1. The form of rates.lua. */
export interface CallRate {
  readonly name: string;
  readonly period: number;
  readonly burst: number;
  /** The most tokens that may be owed; absent: the burst. */
  readonly most?: number;
  readonly of: readonly number[];
  /** Cost, prompt and choices of each of these requests; absent for a rate of requests. */
  readonly charges?: readonly (readonly [number, number, number])[];
}

/**
 * How many bursts of tokens may be owed. A generation may use more than it was charged, because no
 * gateway knows the tokens of a prompt and of the conversation before it.
 */
const MOST_OWED = 60;

/** @returns undefined if no request has a rate */
export function ratesOfCall(
  requests: readonly { readonly rates?: readonly ChargedRate[] | undefined }[],
  share: (rate: Rate) => Rate = (rate) => rate,
): CallRate[] | undefined {
  if (requests.every(({ rates }) => rates === undefined || rates.length === 0)) return undefined;
  const all = new Map<string, CallRate & { readonly of: number[]; readonly charges?: [number, number, number][] }>();
  for (const [i, { rates = [] }] of requests.entries()) {
    for (const rate of rates) {
      const { charge } = rate;
      let known = all.get(rate.name);
      if (known === undefined) {
        const { name, periodUs: period, burst } = share(rate);
        known = { name, period, burst, of: [], ...(charge && { most: rate.burst * MOST_OWED, charges: [] }) };
        all.set(name, known);
      }
      known.of.push(i + 1);
      if (charge !== undefined) known.charges?.push([charge.cost, charge.prompt, charge.choices]);
    }
  }
  return [...all.values()];
}

/**
 * A bucket's share of a rate in a Redis Cluster, in which each bucket counts its own requests. The
 * shares of all buckets are the whole rate, but each bucket admits at least one request, unless the
 * rate admits none.
 */
export function shareOfRate({ name, periodUs, burst }: Rate, bucket: number, buckets: number): Rate {
  if (burst === 0) return { name, periodUs, burst };
  const rest = (bucket + name.length) % buckets < burst % buckets ? 1 : 0;
  return { name, periodUs: periodUs * buckets, burst: Math.max(1, Math.floor(burst / buckets) + rest) };
}

/**
 * Reads the name, remainder and reset of each rate that an answer of a script ends with.
 * @returns undefined if the answer has none
 */
export function standingsOf(rest: readonly unknown[]): RateStanding[] | undefined {
  if (rest.length === 0) return undefined;
  const standings: RateStanding[] = [];
  for (let i = 0; i + 2 < rest.length; i += 3) {
    standings.push({ name: text(rest[i]), remaining: integer(rest[i + 1]), resetUs: integer(rest[i + 2]) });
  }
  return standings;
}
