/**
 * The order of the requests that wait for an admission call, and the choice for the next call.
 * Tenants take turns by weight, so a tenant that sends a flood holds up no other tenant. A call
 * takes many small requests. A large request has a call of its own, beside the calls of small
 * requests. Steps of a sequence keep their order, even if their sizes differ.
 */
import type { CallLimits } from "#shared/chunks.js";

/** The facts that decide when a call takes a request. */
export interface Waiter {
  readonly tenant: string;
  /** Of the tenant; 1 if absent. */
  readonly weight?: number | undefined;
  /** Name of the step's sequence; undefined for a request outside of sequences. */
  readonly sequence: string | undefined;
  readonly bytes: number;
  /** Higher than the order of all earlier requests. */
  readonly order: number;
  /** Time of arrival, on `performance.now()`'s clock. */
  readonly since: number;
}

export type Size = "small" | "large";

interface Line<One> {
  /** In order of arrival. */
  waiting: One[];
  /** How many of the waiting requests are large. */
  large: number;
  /** When a call last took a large request, or the tenant came, counted in calls. */
  largeAt: number;
  /** Virtual time: how many small requests the tenant has given, by its weight. */
  at: number;
}

/** The tenant with a request that has given the least, of several the one that gave longer ago. */
function nextOf<One>(givers: readonly Giver<One>[]): Giver<One> | undefined {
  let least: Giver<One> | undefined;
  for (const giver of givers) {
    if (giver.next === undefined) continue;
    const difference = giver.line.at - (least?.line.at ?? Infinity);
    if (least === undefined || difference < 0 || (difference === 0 && giver.given.size < least.given.size)) {
      least = giver;
    }
  }
  return least;
}

/** A tenant in a call of small requests. */
interface Giver<One> {
  readonly tenant: string;
  readonly line: Line<One>;
  readonly may: Iterator<One, undefined>;
  /** The tenant's next request for the call; undefined if no further request may go. */
  next: One | undefined;
  readonly given: Set<One>;
}

export class Turns<One extends Waiter> {
  readonly #limits: Required<CallLimits>;
  /** By tenant. The tenant whose turn is next comes first. */
  readonly #lines = new Map<string, Line<One>>();
  /**
   * By kind, the sequences of the call under way, and of calls whose end is not known. Only calls
   * of the same kind take more steps of these sequences.
   */
  readonly #underWay: Record<Size, ReadonlySet<string>> = { small: new Set(), large: new Set() };
  /** The steps that came behind a large step of their sequence. */
  readonly #behindLarge = new WeakSet<One>();
  /** By sequence, the orders of its steps that prepare to come again, and the steps behind them. */
  readonly #away = new Map<string, { readonly orders: Set<number>; behind: One[] }>();
  #calls = 0;
  /** The virtual time of the tenant that gave last. A tenant that comes anew starts there. */
  #clock = 0;

  /** @param limits of one call; a request with more bytes is large */
  constructor(limits: Required<CallLimits>) {
    this.#limits = limits;
  }

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  sizeOf({ bytes }: Pick<One, "bytes">): Size {
    return bytes > this.#limits.bytes ? "large" : "small";
  }

  /**
   * Adds a request. A request that comes again keeps its order, and so goes before later requests.
   */
  add(one: One): void {
    const away = one.sequence === undefined ? undefined : this.#away.get(one.sequence);
    if (away !== undefined && Math.min(...away.orders) < one.order) {
      away.behind.push(one);
      return;
    }
    const line = this.#lines.get(one.tenant) ?? { waiting: [], large: 0, largeAt: this.#calls, at: this.#clock };
    this.#lines.set(one.tenant, line);
    const after = line.waiting.findLastIndex(({ order }) => order < one.order);
    if (this.#isBehindLarge(one, line, after)) this.#behindLarge.add(one);
    line.waiting.splice(after + 1, 0, one);
    if (this.sizeOf(one) === "large") line.large++;
  }

  /**
   * Holds back the later steps of this sequence while the step with this order prepares to come
   * again.
   * @returns a function that ends that; the caller adds the step itself before further calls
   */
  holdBehind({ tenant, sequence, order }: Pick<One, "tenant" | "order"> & { readonly sequence: string }): () => void {
    const away = this.#away.get(sequence) ?? { orders: new Set(), behind: [] };
    this.#away.set(sequence, away);
    away.orders.add(order);
    const later = this.#lines.get(tenant)?.waiting.filter((one) => one.sequence === sequence && one.order > order);
    away.behind.push(...(later ?? []));
    this.#takeOut(tenant, new Set(later));
    return () => {
      away.orders.delete(order);
      const { behind } = away;
      away.behind = [];
      if (away.orders.size === 0) this.#away.delete(sequence);
      for (const one of behind) this.add(one);
    };
  }

  /**
   * Whether a request may wait for as long as a large one: it is large, or a step behind a large
   * step.
   */
  mayWaitLong(one: One): boolean {
    return this.sizeOf(one) === "large" || this.#behindLarge.has(one);
  }

  /** @param after the index of the last request that waits before this step */
  #isBehindLarge({ sequence }: One, { waiting, large }: Line<One>, after: number): boolean {
    if (sequence === undefined) return false;
    if (this.#underWay.large.has(sequence)) return true;
    return large > 0 && waiting.slice(0, after + 1).some((one) => one.sequence === sequence && this.mayWaitLong(one));
  }

  /**
   * Takes out the requests that have waited for too long.
   * @param oldest earlier arrivals are overdue: of small requests, and of requests that may wait
   * long
   */
  takeOverdue(oldest: Readonly<Record<Size, number>>): One[] {
    const overdue: One[] = [];
    for (const [tenant, { waiting }] of this.#lines) {
      const some = waiting.filter((one) => one.since < oldest[this.mayWaitLong(one) ? "large" : "small"]);
      overdue.push(...some);
      this.#takeOut(tenant, new Set(some));
    }
    return overdue;
  }

  /**
   * Takes out the requests for the next call of this kind, possibly none. The last call of this
   * kind is over, and its requests that come again are here.
   * @param isKnown whether the ends of the calls of this kind are known
   * @returns also whether calls of the other kind may now take steps that they could not take
   * before
   */
  next(size: Size, isKnown = true): { readonly call: readonly One[]; readonly frees: boolean } {
    this.#calls++;
    const before = this.#underWay[size];
    const call = size === "small" ? this.#takeSmall() : this.#takeLarge();
    const taken = call.flatMap(({ sequence }) => sequence ?? []);
    this.#underWay[size] = new Set(isKnown ? taken : [...before, ...taken]);
    return { call, frees: isKnown && before.size > 0 };
  }

  /**
   * The tenant that has given the least, by its weight, gives the next request, until the call is
   * full or no tenant has more that may go.
   */
  #takeSmall(): One[] {
    const { bytes, items } = this.#limits;
    const call: One[] = [];
    let room = bytes;
    const givers: Giver<One>[] = [];
    for (const [tenant, line] of this.#lines) {
      if (givers.length === items) break;
      if (line.waiting.length === line.large) continue;
      const may = this.#smallOf(line.waiting);
      const { value } = may.next();
      // A tenant without a request that may go stays in front, and takes no place in this call.
      if (value !== undefined) givers.push({ tenant, line, may, next: value, given: new Set() });
    }
    while (call.length < items) {
      const giver = nextOf(givers);
      if (giver?.next === undefined) break;
      const { line, may, next, given } = giver;
      // A request that does not fit begins the tenant's part of a later call.
      giver.next = next.bytes > room ? undefined : may.next().value;
      if (next.bytes > room) continue;
      room -= next.bytes;
      given.add(next);
      call.push(next);
      this.#clock = Math.max(this.#clock, line.at);
      line.at += 1 / (next.weight ?? 1);
    }
    for (const { tenant, given } of givers) this.#serve(tenant, given);
    return call;
  }

  /** The requests of one tenant that may go: no step of the same sequence stays before them. */
  *#smallOf(waiting: readonly One[]): Generator<One, undefined> {
    const staying = new Set(this.#underWay.large);
    for (const one of waiting) {
      const { sequence } = one;
      const stays = this.sizeOf(one) === "large" || (sequence !== undefined && staying.has(sequence));
      if (!stays) yield one;
      else if (sequence !== undefined) staying.add(sequence);
    }
    return undefined;
  }

  /** The tenant whose last large request is longest ago gives its first that may go. */
  #takeLarge(): One[] {
    let best: { readonly tenant: string; readonly one: One; readonly line: Line<One> } | undefined;
    for (const [tenant, line] of this.#lines) {
      if (line.large === 0 || (best !== undefined && best.line.largeAt <= line.largeAt)) continue;
      const one = this.#firstLarge(line.waiting);
      if (one !== undefined) best = { tenant, one, line };
    }
    if (best === undefined) return [];
    best.line.largeAt = this.#calls;
    this.#takeOut(best.tenant, new Set([best.one]));
    return [best.one];
  }

  #firstLarge(waiting: readonly One[]): One | undefined {
    const begun = new Set(this.#underWay.small);
    for (const one of waiting) {
      const { sequence } = one;
      if (this.sizeOf(one) === "large" && (sequence === undefined || !begun.has(sequence))) return one;
      if (sequence !== undefined) begun.add(sequence);
    }
    return undefined;
  }

  /** Takes out the requests that a tenant has given. The tenant is then behind all others. */
  #serve(tenant: string, given: ReadonlySet<One>): void {
    if (given.size === 0) return;
    this.#takeOut(tenant, given);
    const line = this.#lines.get(tenant);
    if (line === undefined) return;
    this.#lines.delete(tenant);
    this.#lines.set(tenant, line);
  }

  #takeOut(tenant: string, given: ReadonlySet<One>): void {
    const line = this.#lines.get(tenant);
    if (line === undefined || given.size === 0) return;
    line.waiting = line.waiting.filter((one) => !given.has(one));
    if (line.waiting.length === 0) this.#lines.delete(tenant);
    else if (line.large > 0) line.large = line.waiting.filter((one) => this.sizeOf(one) === "large").length;
  }
}
