import { describe, expect, it } from "vitest";
import { candidates, type Candidates } from "./candidates.js";
import { draw } from "./draw.js";
import { uniform } from "./random.js";

function of(weights: Readonly<Record<number, number>>): Candidates {
  const ids = Object.keys(weights).map(Number);
  return { ids: Int32Array.from(ids), weights: Float64Array.from(Object.values(weights)), count: ids.length };
}

/** @returns the token that one random number would draw with running sums */
function bySums({ ids, weights, count }: Candidates, seed: number, index: number): number {
  let total = 0;
  for (let i = 0; i < count; i++) total += weights[i] ?? 0;
  let left = uniform(seed, 0, index) * total;
  let i = 0;
  while (i < count - 1 && left >= (weights[i] ?? 0)) left -= weights[i++] ?? 0;
  return ids[i] ?? -1;
}

describe("draw", () => {
  it("takes the only candidate", () => {
    expect(draw(of({ 41: 0.001 }), 1, 0, 0)).toBe(41);
  });

  it("draws each by its weight, wherever its id lies", () => {
    const weights = { 0: 1, 1: 2, 5: 3, 6: 1e-12, 4096: 4, 150_000: 6 };
    const seen = new Map<number, number>();
    const count = 32_000;
    for (let index = 0; index < count; index++) {
      const id = draw(of(weights), 11, 0, index);
      seen.set(id, (seen.get(id) ?? 0) + 1);
    }
    for (const [id, weight] of Object.entries(weights)) {
      const share = weight / 16;
      const deviation = Math.sqrt(count * share * (1 - share));
      expect(Math.abs((seen.get(Number(id)) ?? 0) - count * share)).toBeLessThan(3.5 * deviation + 1);
    }
  });

  it("draws apart for each choice and each place", () => {
    const flat = of(Object.fromEntries(Array.from({ length: 1000 }, (_, id) => [id, 1])));
    const places = [draw(flat, 5, 0, 0), draw(flat, 5, 0, 1), draw(flat, 5, 1, 0), draw(flat, 6, 0, 0)];
    expect(new Set(places).size).toBe(4);
  });

  it("hardly ever draws another token for noise in the logits, where running sums often do", () => {
    const untruncated = { temperature: 1, topK: 0, topP: 1, minP: 0 };
    // A few likely tokens and a long tail of unlikely tokens, as in language models.
    const rows = Array.from({ length: 4 }, (_, row) =>
      Float32Array.from({ length: 4096 }, (_, id) => 4 * uniform(1, id, row) + (id % 256 === 7 ? 8 : 0)),
    );
    let moved = 0;
    let movedBySums = 0;
    for (let index = 0; index < 400; index++) {
      const clean = rows[index % rows.length] ?? new Float32Array();
      // Far more than real noise, so that the difference shows in few draws. Both counts grow with
      // the noise alike.
      const noisy = clean.map((logit, id) => logit + 4e-4 * (uniform(2, id, index) - 0.5));
      const [first, second] = [clean, noisy].map((logits) => {
        const found = candidates(logits, Math.max(...logits), untruncated);
        return { halving: draw(found, 3, 0, index), sums: bySums(found, 3, index) };
      });
      if (first?.halving !== second?.halving) moved++;
      if (first?.sums !== second?.sums) movedBySums++;
    }
    expect(moved).toBeLessThanOrEqual(1);
    expect(movedBySums).toBeGreaterThanOrEqual(5);
  });
});
