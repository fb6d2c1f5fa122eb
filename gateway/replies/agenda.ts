/**
 * Who is due when, to within a few milliseconds. Entries lie in slots of time, so entering, moving
 * and taking out cost the same however many there are. Whoever has been due for longest goes first.
 */

const SLOT_MS = 5;

export class Agenda<Item> {
  /** By slot; a slot holds who is due by its end. */
  readonly #slots = new Map<number, Set<Item>>();
  readonly #slotOf = new Map<Item, number>();
  /** The first slot that has not been emptied yet. */
  #next: number;

  /** @param now on the clock of all times given here. */
  constructor(now: number) {
    this.#next = slotAt(now);
  }

  /** Enters the item, or moves it; one whose time has passed is due at the next asking. */
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

  /** Takes out all who are due, longest due first. */
  takeDue(now: number): Item[] {
    const due: Item[] = [];
    for (; this.#next * SLOT_MS <= now; this.#next++) {
      for (const item of this.#slots.get(this.#next) ?? []) {
        this.#slotOf.delete(item);
        due.push(item);
      }
      this.#slots.delete(this.#next);
    }
    return due;
  }
}

/** Nobody is due before its time. */
function slotAt(at: number): number {
  return Math.ceil(at / SLOT_MS);
}
