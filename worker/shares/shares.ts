/**
 * The order in which tenants get something that there is too little of. Priority levels go
 * strictly, and within a level tenants have shares by weight: start-time fair queueing (Goyal, Vin
 * and Cheng, 1996), with a tenant as a flow. A tenant that uses an amount spends this amount,
 * divided by the tenant's weight, of virtual time. The tenant with the least virtual time is next.
 * Only work that runs is charged, so work that a client cancels earlier costs nothing.
 */

/** Who asks, and for how large a share. */
export interface Sharer {
  /** From 1, which goes first. */
  readonly level: number;
  readonly tenant: string;
  /** Above 0. A tenant gets as much for each unit of weight as every other tenant that waits. */
  readonly weight: number;
}

export class Shares {
  readonly #levels = new Map<number, LevelShares>();

  /**
   * @param waiting everything that waits, in order of arrival
   * @returns the same by levels and tenants, the next tenant first, and each tenant's in order of
   *   arrival
   */
  inTurn<One extends Sharer>(waiting: readonly One[]): One[][] {
    const byLevel = grouped(waiting, ({ level }) => level);
    const levels = [...byLevel].sort(([a], [b]) => a - b);
    return levels.flatMap(([level, own]) => this.#levelOf(level).inTurn(own));
  }

  /** Charges a tenant for what runs now or has run. */
  charge(sharer: Sharer, amount: number): void {
    this.#levelOf(sharer.level).charge(sharer, amount);
  }

  /** To be called when nothing waits and nothing runs: the next tenants begin as equals. */
  clear(): void {
    this.#levels.clear();
  }

  #levelOf(level: number): LevelShares {
    const found = this.#levels.get(level) ?? new LevelShares();
    this.#levels.set(level, found);
    return found;
  }
}

class LevelShares {
  /** The virtual times of tenants; later than `#now`, which holds for all tenants without one. */
  readonly #times = new Map<string, number>();
  /**
   * The virtual time of the tenant that was next last. It never goes back, so a tenant that comes
   * has earned nothing by the time in which it wanted nothing.
   */
  #now = 0;

  inTurn<One extends Sharer>(waiting: readonly One[]): One[][] {
    const byTenant = grouped(waiting, ({ tenant }) => tenant);
    const turns = [...byTenant].map(([tenant, own]) => ({ at: this.#timeOf(tenant), own }));
    turns.sort((a, b) => a.at - b.at);
    this.#now = turns[0]?.at ?? this.#now;
    for (const [tenant, at] of this.#times) if (at <= this.#now) this.#times.delete(tenant);
    return turns.map(({ own }) => own);
  }

  charge({ tenant, weight }: Sharer, amount: number): void {
    this.#times.set(tenant, this.#timeOf(tenant) + amount / weight);
  }

  #timeOf(tenant: string): number {
    return Math.max(this.#now, this.#times.get(tenant) ?? 0);
  }
}

/** @returns the groups in the order of their first members */
function grouped<One, Key>(all: readonly One[], keyOf: (one: One) => Key): Map<Key, One[]> {
  const groups = new Map<Key, One[]>();
  for (const one of all) {
    const key = keyOf(one);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return groups;
}
