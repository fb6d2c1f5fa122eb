/**
 * The time of a simulation, and the order of its events. Nothing happens between two events, so the
 * order of events is the whole history, and it follows from the seed alone.
 */
import type { World } from "#shared/world.js";
import type { Random } from "../support/fleet/random.js";

interface Event {
  at: number;
  /** Events of the same moment happen in the order of their planning. */
  order: number;
  readonly owner: Owner | undefined;
  readonly what: string;
  act: (() => void | Promise<void>) | undefined;
}

/** A process of the simulation, for the scheduler. */
export class Owner {
  readonly name: string;
  isDead = false;
  /** Events that came due while the process was frozen; undefined while the process runs. */
  held: Event[] | undefined;

  constructor(name: string) {
    this.name = name;
  }
}

/** More events than this at the same moment mean that events plan each other in a circle. */
const MOST_AT_ONCE = 100_000;

/** Simulated time stands still, although there is always another event. */
export class Standstill extends Error {}

export class Scheduler {
  /** Simulated ms since the run began. */
  now = 0;
  readonly #heap: Event[] = [];
  #orders = 0;
  #atOnce = 0;

  /** @returns a function that cancels the event */
  plan(owner: Owner | undefined, afterMs: number, what: string, act: () => void | Promise<void>): () => void {
    const event: Event = { at: this.now + Math.max(0, afterMs), order: this.#orders++, owner, what, act };
    this.#push(event);
    return () => (event.act = undefined);
  }

  freeze(owner: Owner): void {
    owner.held ??= [];
  }

  /** Events that came due while frozen happen now, in the order in which they came due. */
  thaw(owner: Owner): void {
    const { held = [] } = owner;
    owner.held = undefined;
    for (const event of held) {
      event.at = this.now;
      event.order = this.#orders++;
      this.#push(event);
    }
  }

  /**
   * Lets time pass until `until`.
   * @param isOver ends the run earlier; called after each event
   */
  async run(until: number, isOver: () => boolean = () => false): Promise<void> {
    while (!isOver()) {
      const event = this.#heap[0];
      if (event === undefined || event.at > until) {
        this.now = Math.max(this.now, until);
        return;
      }
      this.#pop();
      const { owner, what, act } = event;
      if (act === undefined || owner?.isDead === true) continue;
      this.#atOnce = event.at === this.now ? this.#atOnce + 1 : 0;
      this.now = event.at;
      if (this.#atOnce > MOST_AT_ONCE) throw new Standstill(`time stands still: ${what}; ${this.pending()}`);
      if (owner?.held !== undefined) {
        owner.held.push(event);
        continue;
      }
      event.act = undefined;
      await act();
      await allSettled();
    }
  }

  /** The planned events, by process, from which a reader can see which process has stopped. */
  pending(): string {
    const counts = new Map<string, number>();
    for (const { owner, what, act } of this.#heap) {
      if (act === undefined || owner?.isDead === true) continue;
      const key = `${owner?.name ?? "the plan"} ${what}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return [...counts].map(([key, count]) => `${key} ×${count}`).join("; ");
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let i = heap.push(event) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!isBefore(event, heap[parent])) break;
      heap[i] = heap[parent] ?? event;
      i = parent;
    }
    heap[i] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] ?? last, heap[child])) child++;
      const one = heap[child];
      if (one === undefined || !isBefore(one, last)) break;
      heap[i] = one;
      i = child;
    }
    heap[i] = last;
  }
}

function isBefore(one: Event, other: Event | undefined): boolean {
  if (other === undefined) return true;
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}

/** Resolves when all promises that could make progress have done so. */
function allSettled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The world of a process: the scheduler's time, on the process's own clock, and seeded chance. */
export function worldOf(owner: Owner, scheduler: Scheduler, random: Random): World {
  const began = random.between(0, 1_000_000);
  const { now, hex } = { now: () => scheduler.now + began, hex: hexOf(random) };
  return {
    now,
    hex,
    // Node's timers are late by up to a ms and a half.
    after: (ms, act) => scheduler.plan(owner, Math.max(0, ms) + random.unit() * 1.5, "timer", act),
    at(time, act) {
      return time === Infinity ? () => undefined : scheduler.plan(owner, time - now(), "alarm", act);
    },
    turn: () => new Promise((resolve) => scheduler.plan(owner, 0, "turn", resolve)),
    random: () => random.unit(),
    uuid: () => [4, 2, 2, 2, 6].map(hex).join("-"),
  };
}

function hexOf(random: Random): (bytes: number) => string {
  return (bytes) => Array.from({ length: bytes }, () => random.between(0, 255).toString(16).padStart(2, "0")).join("");
}
