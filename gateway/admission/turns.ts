/**
 * Whose turn it is: the requests that wait for an admission call, and which of them the next call
 * takes. Tenants take turns, so one that sends a flood holds up no other. Small requests go many in
 * a call, and a large one has a call of its own, beside those of the small ones. Steps of a
 * sequence keep their order, whatever their sizes.
 */
import type { CallLimits } from "#shared/chunks.js";

/** What decides when a request is taken. */
export interface Waiter {
  readonly tenant: string;
  /** Name of the sequence of which it is a step; undefined for none. */
  readonly sequence: string | undefined;
  readonly bytes: number;
  /** Higher than that of all who came before. */
  readonly order: number;
  /** When it came, on `performance.now()`'s clock. */
  readonly since: number;
}

export type Size = "small" | "large";

interface Line<One> {
  /** In the order in which they came. */
  waiting: One[];
  /** How many of them are large. */
  large: number;
  /** When the last large one was taken, or the tenant came, counted in calls. */
  largeAt: number;
}

/** A tenant in a call of small requests. */
interface Giver<One> {
  readonly tenant: string;
  readonly may: Iterator<One, undefined>;
  /** What it gives when its turn comes; undefined where nothing more may go. */
  next: One | undefined;
  readonly given: Set<One>;
}

export class Turns<One extends Waiter> {
  readonly #limits: Required<CallLimits>;
  /** By tenant. The one whose turn it is comes first. */
  readonly #lines = new Map<string, Line<One>>();
  /**
   * The sequences of the call of each kind that is under way, and of those whose end is not known:
   * only calls of the same kind take more steps of them.
   */
  readonly #underWay: Record<Size, ReadonlySet<string>> = { small: new Set(), large: new Set() };
  /** The steps that came behind a large one of their sequence. */
  readonly #behindLarge = new WeakSet<One>();
  /** By sequence, the orders of its steps that prepare to come again, and who stays behind them. */
  readonly #away = new Map<string, { readonly orders: Set<number>; behind: One[] }>();
  #calls = 0;

  /** @param limits of one call; a request with more bytes than these is large */
  constructor(limits: Required<CallLimits>) {
    this.#limits = limits;
  }

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  sizeOf({ bytes }: Pick<One, "bytes">): Size {
    return bytes > this.#limits.bytes ? "large" : "small";
  }

  /** One that comes again, with the order that it had, goes before those that came after it. */
  add(one: One): void {
    const away = one.sequence === undefined ? undefined : this.#away.get(one.sequence);
    if (away !== undefined && Math.min(...away.orders) < one.order) {
      away.behind.push(one);
      return;
    }
    const line = this.#lines.get(one.tenant) ?? { waiting: [], large: 0, largeAt: this.#calls };
    this.#lines.set(one.tenant, line);
    const after = line.waiting.findLastIndex(({ order }) => order < one.order);
    if (this.#isBehindLarge(one, line, after)) this.#behindLarge.add(one);
    line.waiting.splice(after + 1, 0, one);
    if (this.sizeOf(one) === "large") line.large++;
  }

  /**
   * Lets no step of this sequence go that came after the one with this order, which comes again.
   * @returns ends that; the step itself is to be added before calls are made again
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

  /** Whether it may wait for as long as a large one: it is one, or a step that came behind one. */
  mayWaitLong(one: One): boolean {
    return this.sizeOf(one) === "large" || this.#behindLarge.has(one);
  }

  /** @param after the index of the last one that waits before it */
  #isBehindLarge({ sequence }: One, { waiting, large }: Line<One>, after: number): boolean {
    if (sequence === undefined) return false;
    if (this.#underWay.large.has(sequence)) return true;
    return large > 0 && waiting.slice(0, after + 1).some((one) => one.sequence === sequence && this.mayWaitLong(one));
  }

  /**
   * Takes out those that have waited for too long.
   * @param oldest what came before these: of small ones, and of those that may wait long
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
   * Takes out those that the next call of this kind brings, which may be none. The last call of
   * this kind is over, and what comes again of it is here.
   * @param isKnown whether it is known how the calls of this kind have ended
   * @returns also whether steps may go now with a call of the other kind that could not before
   */
  next(size: Size, isKnown = true): { readonly call: readonly One[]; readonly frees: boolean } {
    this.#calls++;
    const before = this.#underWay[size];
    const call = size === "small" ? this.#takeSmall() : this.#takeLarge();
    const taken = call.flatMap(({ sequence }) => sequence ?? []);
    this.#underWay[size] = new Set(isKnown ? taken : [...before, ...taken]);
    return { call, frees: isKnown && before.size > 0 };
  }

  /** Each tenant gives one in turn, until the call is full or none has more that may go. */
  #takeSmall(): One[] {
    const { bytes, items } = this.#limits;
    const call: One[] = [];
    let room = bytes;
    let givers: Giver<One>[] = [];
    for (const [tenant, { waiting, large }] of this.#lines) {
      if (givers.length === items) break;
      if (waiting.length === large) continue;
      const may = this.#smallOf(waiting);
      const { value } = may.next();
      // Who has nothing that may go stays in front, and takes nobody's place in this call.
      if (value !== undefined) givers.push({ tenant, may, next: value, given: new Set() });
    }
    const all = givers;
    while (givers.length > 0 && call.length < items) {
      givers = givers.filter((giver) => {
        const { may, next, given } = giver;
        if (call.length === items) return true;
        if (next === undefined || next.bytes > room) return false;
        room -= next.bytes;
        given.add(next);
        call.push(next);
        giver.next = may.next().value;
        return true;
      });
    }
    for (const { tenant, given } of all) this.#serve(tenant, given);
    return call;
  }

  /** Those of one tenant that may go: no step of the same sequence stays before them. */
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

  /** The tenant whose last large one is longest ago gives its first that may go. */
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

  /** Takes out what a tenant has given. Whoever has given something is behind all others now. */
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
