/**
 * Random numbers that a seed reproduces, so that a failing run can run again. The generator is
 * mulberry32, which is not for secrets.
 */
export interface Random {
  /** A number in [0, 1). */
  unit(): number;
  /** An integer in [low, high]. */
  between(low: number, high: number): number;
  /** True with this probability, from 0 to 1. */
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
  shuffle<T>(items: readonly T[]): T[];
  int64(): bigint;
  /**
   * An independent generator: the draws of a test's part do not change the draws of another part.
   */
  fork(label: string): Random;
}

export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const unit = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const between = (low: number, high: number) => low + Math.floor(unit() * (high - low + 1));
  return {
    unit,
    between,
    chance: (probability) => unit() < probability,
    pick(items) {
      const picked = items[between(0, items.length - 1)];
      if (picked === undefined) throw new Error("nothing to pick from");
      return picked;
    },
    shuffle(items) {
      const keyed = items.map((item) => ({ item, key: unit() }));
      return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
    },
    int64: () => BigInt.asIntN(64, (BigInt(between(0, 0xffffffff)) << 32n) | BigInt(between(0, 0xffffffff))),
    fork(label) {
      let hash = seed >>> 0;
      for (const char of label) hash = Math.imul(hash ^ char.charCodeAt(0), 0x01000193) >>> 0;
      return seededRandom(hash ^ 0x9e3779b9);
    },
  };
}
