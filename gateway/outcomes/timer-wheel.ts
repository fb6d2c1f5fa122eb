/**
 * Which items are due when, to within a few milliseconds. Items lie in slots of time, so setting,
 * moving and taking out cost the same however many there are. The longest due item comes first.
 */

/** An item is due at most this many ms late, and never early. */
const SLOT_MS = 5;

export class TimerWheel<Item> {
  /** Slots by their numbers. Each holds the items that are due by its end. */
  readonly #slots = new Map<number, Set<Item>>();
  readonly #slotOf = new Map<Item, number>();
  /** The first slot that may still hold items. */
  #next: number;

  /** @param now in ms, on the clock of all times given here */
  constructor(now: number) {
    this.#next = slotAt(now);
  }

  /** Adds an item, or moves it. An item whose time `at` has passed is due at the next `takeDue`. */
  set(item: Item, at: number): void {
    this.delete(item);
    const slot = Math.max(slotAt(at), this.#next);
    const others = this.#slots.get(slot);
    if (others === undefined) this.#slots.set(slot, new Set([item]));
    else others.add(item);
    this.#slotOf.set(item, slot);
  }

  has(item: Item): boolean {
    return this.#slotOf.has(item);
  }

  delete(item: Item): void {
    const slot = this.#slotOf.get(item);
    if (slot === undefined) return;
    this.#slotOf.delete(item);
    const others = this.#slots.get(slot);
    others?.delete(item);
    if (others?.size === 0) this.#slots.delete(slot);
  }

  /**
   * Takes out the items that are due, longest due first.
   * @param most at most this many; the rest stay due
   */
  takeDue(now: number, most = Infinity): Item[] {
    const due: Item[] = [];
    for (; this.#next * SLOT_MS <= now; this.#next++) {
      for (const item of this.#slots.get(this.#next) ?? []) {
        if (due.length >= most) return due;
        this.delete(item);
        due.push(item);
      }
    }
    return due;
  }
}

/** Rounds up, so that no item is due before its time. */
function slotAt(at: number): number {
  return Math.ceil(at / SLOT_MS);
}
