/** What clients have used, and the quotas of their owners, in the forms of usage.lua. */

/** What a quota counts, in a UTC day or month: a field of the record `taken`. */
export const quotaFields = ["dayRequests", "dayTokens", "dayComputeUs", "requests", "tokens", "computeUs"] as const;
export type QuotaField = (typeof quotaFields)[number];

/** How much an owner may use in a day or month. */
export interface Quota {
  /** As in `Rate`. */
  readonly name: string;
  readonly field: QuotaField;
  /** Requests, tokens or µs. */
  readonly most: number;
}

/** Whose usage a request counts as. */
export interface Usage {
  /** Id of the key, or `NO_KEY`. */
  readonly key: string;
  /** 1; 0 for a further part of a request. */
  readonly counts: 0 | 1;
  /** Present for a generation: the tokens that its prompt is taken for, and its choices. */
  readonly generation?: { readonly prompt: number; readonly choices: number };
}

/** The usage of a call's requests, by their numbers, from 1. */
export interface CallUsage {
  readonly keptMs: number;
  readonly users: readonly { readonly key: string; readonly counts: 0 | 1; readonly of: readonly number[] }[];
  readonly generations?: readonly (readonly [request: number, prompt: number, choices: number])[] | undefined;
}

/** @returns undefined if nobody counts the usage of any of the requests */
export function usageOfCall(
  requests: readonly { readonly usage?: Usage | undefined }[],
  keptMs: number,
): CallUsage | undefined {
  const users = new Map<string, { key: string; counts: 0 | 1; of: number[] }>();
  const generations: [number, number, number][] = [];
  for (const [i, { usage }] of requests.entries()) {
    if (usage === undefined) continue;
    const { key, counts, generation } = usage;
    const name = `${key} ${counts}`;
    const user = users.get(name) ?? { key, counts, of: [] };
    user.of.push(i + 1);
    users.set(name, user);
    if (generation !== undefined) generations.push([i + 1, generation.prompt, generation.choices]);
  }
  if (users.size === 0) return undefined;
  return { keptMs, users: [...users.values()], generations: generations.length === 0 ? undefined : generations };
}

/** The quotas of a call's requests; all numbers count from 1. */
export interface CallQuotas {
  /** Each quota once. */
  readonly quotas?: readonly Quota[];
  /** Lists of quotas, and the requests that have the list. */
  readonly owed?: readonly { readonly quotas: readonly number[]; readonly of: readonly number[] }[];
}

/** Requests of the same owner mostly share one list, which then goes to Redis once. */
export function quotasOfCall(
  requests: readonly { readonly quotas?: readonly Quota[] | undefined }[],
  share: (quota: Quota) => number,
): CallQuotas {
  const numbers = new Map<string, number>();
  const quotas: Quota[] = [];
  const owed = new Map<readonly Quota[], { quotas: number[]; of: number[] }>();
  const numberOf = (quota: Quota): number => {
    const name = loadFieldOf(quota);
    const number = numbers.get(name) ?? quotas.push({ ...quota, most: share(quota) });
    numbers.set(name, number);
    return number;
  };
  for (const [i, { quotas: own }] of requests.entries()) {
    if (own === undefined) continue;
    const known = owed.get(own) ?? { quotas: own.map(numberOf), of: [] };
    known.of.push(i + 1);
    owed.set(own, known);
  }
  return owed.size === 0 ? {} : { quotas, owed: [...owed.values()] };
}

/** Under which gateways of a Cluster note what each bucket counts of a quota. */
export function loadFieldOf({ name, field }: Pick<Quota, "name" | "field">): string {
  return `q:${field}:${name}`;
}

/** The opposite of `loadFieldOf`. */
export function quotaOf(field: string): Pick<Quota, "name"> & { readonly field: string } {
  const [, of = "", ...name] = field.split(":");
  return { name: name.join(":"), field: of };
}
