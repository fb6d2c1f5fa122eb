/**
 * One gateway's view of the loads of all buckets of a Redis Cluster, and the share of a limit that
 * it gives to a bucket. The view only computes; `loads.ts` asks Redis.
 */
import type { CallNames } from "#shared/queue/admission/limits.js";
import { heldField } from "#shared/queue/pieces/held.js";
import type { Load } from "#shared/queue/pieces/load.js";
import { loadFieldOf } from "#shared/queue/pieces/usage.js";
import type { World } from "#shared/world.js";

/** An older answer of a bucket, in ms, counts as not known. */
export const KNOWN_MS = 1_000;
/** A field that no call has named for this long, in ms, is asked for no more. */
const IN_USE_MS = 2_000;

type Of = "requests" | "bytes";

interface Known {
  readonly requests: number;
  readonly bytes: number;
  readonly at: number;
}

interface Field {
  /** By bucket. */
  readonly buckets: (Known | undefined)[];
  usedAt: number;
}

export class LoadView {
  readonly #buckets: number;
  readonly #world: World;
  readonly #fields = new Map<string, Field>();

  constructor(buckets: number, world: World) {
    this.#buckets = buckets;
    this.#world = world;
  }

  /** Takes the loads of a bucket. */
  note(bucket: number, loads: readonly Load[], now: number): void {
    for (const { field, requests, bytes } of loads) this.#field(field).buckets[bucket] = { requests, bytes, at: now };
  }

  /** The sum over all buckets, as far as known. */
  sum(field: string, of: Of): number {
    return this.#field(field).buckets.reduce((total, one) => total + (one?.[of] ?? 0), 0);
  }

  /**
   * The share of the bucket: its load, and a part of the remaining room. The share grows to fit one
   * larger request if all buckets together have room for that request, because otherwise no bucket
   * would take it. As long as some bucket's load is not known, the share is an equal part of the
   * limit.
   * @param most the limit; negative for none
   * @param largest bytes that one request needs
   */
  shareOf(field: string, of: Of, bucket: number, most: number, now: number, largest = 0): number {
    const known = this.#field(field);
    known.usedAt = now;
    if (most < 0) return most;
    const part = Math.ceil(most / this.#buckets);
    let sum = 0;
    for (let other = 0; other < this.#buckets; other++) {
      const one = known.buckets[other];
      if (one === undefined || now - one.at > KNOWN_MS) return part;
      sum += one[of];
    }
    const room = Math.max(0, most - sum);
    const needed = largest <= room ? largest : 0;
    return (known.buckets[bucket]?.[of] ?? 0) + Math.max(needed, Math.ceil(room / this.#buckets));
  }

  /** The sum over all other buckets, as far as known. */
  sumBeside(field: string, of: Of, bucket: number): number {
    const known = this.#field(field);
    known.usedAt = this.#world.now();
    return this.sum(field, of) - (known.buckets[bucket]?.[of] ?? 0);
  }

  /** Whether every bucket has answered about these names after `since`. */
  knows(names: CallNames, since: number): boolean {
    return ["all", ...fieldsOf(names)].every((name) => {
      const { buckets } = this.#field(name);
      for (let bucket = 0; bucket < this.#buckets; bucket++) if (!((buckets[bucket]?.at ?? 0) > since)) return false;
      return true;
    });
  }

  /** A call is going to name this field. */
  use(field: string): void {
    this.#field(field).usedAt = this.#world.now();
  }

  /** The fields that calls have named lately. */
  fieldsInUse(now: number): string[] {
    for (const [name, { usedAt }] of this.#fields) if (now - usedAt > IN_USE_MS) this.#fields.delete(name);
    return [...this.#fields.keys()];
  }

  #field(name: string): Field {
    let field = this.#fields.get(name);
    if (field === undefined) {
      field = { buckets: [], usedAt: this.#world.now() };
      this.#fields.set(name, field);
    }
    return field;
  }
}

/** The fields that count the requests of a call, beside `all`. */
export function fieldsOf({ models, tenants, owners = [], quotas = [], sequences }: CallNames): string[] {
  return [
    ...models.flatMap((name) => [`m:${name}`, `s:${name}`]),
    ...tenants.map((name) => `t:${name}`),
    ...owners.map(({ name }) => `g:${name}`),
    ...quotas.map(loadFieldOf),
    ...[...(sequences?.keys() ?? [])].map(heldField),
  ];
}
