/**
 * Shares slots among names: the next slot goes to the waiting name that has the fewest slots. So
 * each name has the same share, however many names there are, and a name alone has all slots.
 */
interface Member {
  running: number;
  readonly waiting: (() => void)[];
}

export class Shares {
  #free: number;
  readonly #members = new Map<string, Member>();

  /** @param limit slots of all names together */
  constructor(limit: number) {
    this.#free = limit;
  }

  /**
   * Waits for a slot, which `release` gives back.
   * @returns false if `signal` aborts first: then the caller has no slot
   */
  take(name: string, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    const member = this.#members.get(name) ?? { running: 0, waiting: [] };
    this.#members.set(name, member);
    return new Promise((resolve) => {
      const take = () => {
        signal.removeEventListener("abort", leave);
        resolve(true);
      };
      const leave = () => {
        member.waiting.splice(member.waiting.indexOf(take), 1);
        this.#forgetIfIdle(name, member);
        resolve(false);
      };
      signal.addEventListener("abort", leave, { once: true });
      member.waiting.push(take);
      this.#give();
    });
  }

  release(name: string): void {
    const member = this.#members.get(name);
    if (member === undefined) return;
    member.running--;
    this.#free++;
    this.#forgetIfIdle(name, member);
    this.#give();
  }

  #forgetIfIdle(name: string, { running, waiting }: Member): void {
    if (running === 0 && waiting.length === 0) this.#members.delete(name);
  }

  #give(): void {
    while (this.#free > 0) {
      let next: Member | undefined;
      for (const one of this.#members.values()) {
        if (one.waiting.length > 0 && (next === undefined || one.running < next.running)) next = one;
      }
      const take = next?.waiting.shift();
      if (next === undefined || take === undefined) return;
      next.running++;
      this.#free--;
      take();
    }
  }
}
