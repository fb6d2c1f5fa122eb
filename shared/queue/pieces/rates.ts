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

/** How a rate stood after a request that counts in it. */
export interface RateStanding {
  readonly name: string;
  /** How many requests more the owner may send at once. */
  readonly remaining: number;
  /** µs until the owner is rested. */
  readonly resetUs: number;
}

/** A rate of a call, with the numbers of its requests, from 1. The form of limits.lua. */
export interface CallRate {
  readonly name: string;
  readonly period: number;
  readonly burst: number;
  readonly of: readonly number[];
}

/** @returns undefined if no request has a rate */
export function ratesOfCall(
  requests: readonly { readonly rates?: readonly Rate[] | undefined }[],
  share: (rate: Rate) => Rate = (rate) => rate,
): CallRate[] | undefined {
  if (requests.every(({ rates }) => rates === undefined || rates.length === 0)) return undefined;
  const all = new Map<string, CallRate & { readonly of: number[] }>();
  for (const [i, { rates = [] }] of requests.entries()) {
    for (const rate of rates) {
      const known = all.get(rate.name);
      if (known !== undefined) known.of.push(i + 1);
      else {
        const { name, periodUs: period, burst } = share(rate);
        all.set(name, { name, period, burst, of: [i + 1] });
      }
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

/** Reads the name, remaining requests and reset of an answer of admit.lua; undefined if absent. */
export function standingOf([name, remaining, reset]: readonly unknown[]): RateStanding | undefined {
  if (name === undefined) return undefined;
  return { name: text(name), remaining: integer(remaining), resetUs: integer(reset) };
}
