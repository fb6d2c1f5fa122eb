/**
 * Who of those that want one gets the next slot: whoever has the fewest, so that each has the same
 * share however many others there are, and one that is alone has all.
 */
interface Member {
  running: number;
  readonly waiting: (() => void)[];
}

export class Shares {
  #free: number;
  readonly #members = new Map<string, Member>();

  /** @param limit slots of all together */
  constructor(limit: number) {
    this.#free = limit;
  }

  /** Resolves when there is a slot, which `release` gives back. */
  take(name: string): Promise<void> {
    const member = this.#members.get(name) ?? { running: 0, waiting: [] };
    this.#members.set(name, member);
    return new Promise((resolve) => {
      member.waiting.push(resolve);
      this.#give();
    });
  }

  release(name: string): void {
    const member = this.#members.get(name);
    if (member === undefined) return;
    member.running--;
    this.#free++;
    if (member.running === 0 && member.waiting.length === 0) this.#members.delete(name);
    this.#give();
  }

  #give(): void {
    while (this.#free > 0) {
      let next: Member | undefined;
      for (const one of this.#members.values()) {
        if (one.waiting.length > 0 && (next === undefined || one.running < next.running)) next = one;
      }
      const resolve = next?.waiting.shift();
      if (next === undefined || resolve === undefined) return;
      next.running++;
      this.#free--;
      resolve();
    }
  }
}
