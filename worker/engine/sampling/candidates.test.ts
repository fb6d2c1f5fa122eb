import { describe, expect, it } from "vitest";
import { candidates } from "./candidates.js";
import { uniform } from "./random.js";

interface Given {
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
}

type Kept = [id: number, weight: number][];

function kept(logits: readonly number[], given: Given = {}): Kept {
  const row = Float32Array.from(logits);
  const largest = Math.max(...row.filter((logit) => !Number.isNaN(logit)));
  const { ids, weights, count } = candidates(row, largest, { temperature: 1, topK: 0, topP: 1, minP: 0, ...given });
  return Array.from({ length: count }, (_, i) => [ids[i] ?? -1, weights[i] ?? -1]);
}

const idsOf = (logits: readonly number[], given?: Given): number[] => kept(logits, given).map(([id]) => id);

/** The definition, computed with a full sort, in vLLM's order: min-p, top-k, top-p. */
function naive(logits: readonly number[], { temperature = 1, topK = 0, topP = 1, minP = 0 }: Given): Kept {
  const largest = Math.max(...logits);
  let left = logits
    .map((logit, id): [number, number] => [id, Math.exp((Math.fround(logit) - Math.fround(largest)) / temperature)])
    .filter(([, weight]) => weight >= minP)
    .sort(([a, weightA], [b, weightB]) => weightB - weightA || a - b);
  if (topK > 0) left = left.slice(0, topK);
  const total = left.reduce((sum, [, weight]) => sum + weight, 0);
  let before = 0;
  left = left.filter(([, weight]) => {
    const keep = topP === 1 || before < topP * total;
    before += weight;
    return keep;
  });
  return left.sort(([a], [b]) => a - b);
}

describe("candidates", () => {
  const logits = [0.5, 0.25, 0.125, 0.125].map(Math.log);

  it.each<[what: string, ids: number[], given: Given]>([
    ["all without truncation", [0, 1, 2, 3], {}],
    ["the k likeliest", [0, 1], { topK: 2 }],
    ["the lower id of two that tie for the last place", [0, 1, 2], { topK: 3 }],
    ["all when k is more than there are", [0, 1, 2, 3], { topK: 9 }],
    ["as many as reach top-p, and no more", [0], { topP: 0.5 }],
    ["the one that reaches top-p too", [0, 1], { topP: 0.51 }],
    ["the lower id of two that tie at top-p", [0, 1, 2], { topP: 0.8 }],
    ["one at least, however small top-p is", [0], { topP: 1e-9 }],
    ["what has min-p of the likeliest", [0, 1], { minP: 0.4 }],
    ["ties with the likeliest alone at min-p 1", [0], { minP: 1 }],
    ["by the probabilities that temperature makes", [0, 1, 2, 3], { minP: 0.4, temperature: 2 }],
    ["top-p of what top-k left", [0], { topK: 2, topP: 0.6 }],
    ["top-p of what min-p left", [0], { minP: 0.4, topP: 0.6 }],
  ])("keeps %s", (_what, ids, given) => {
    expect(idsOf(logits, given)).toEqual(ids);
  });

  it("gives the likeliest weight 1 and the others their share of it, sharpened by temperature", () => {
    expect(kept(logits, { temperature: 0.5 }).map(([, weight]) => Math.round(weight * 1e6) / 1e6)).toEqual([
      1, 0.25, 0.0625, 0.0625,
    ]);
  });

  it.each<[what: string, logits: number[], ids: number[]]>([
    ["NaN", [NaN, 1, NaN, 2], [1, 3]],
    ["-Infinity", [-Infinity, 1, 2], [1, 2]],
    ["what Infinity makes impossible", [1, Infinity, 3, Infinity], [1, 3]],
    ["what is too unlikely for a double", [0, 1000], [1]],
  ])("leaves out %s", (_what, row, ids) => {
    for (const given of [{}, { topK: 3 }, { topP: 0.999_999 }, { minP: 1e-300 }])
      expect(idsOf(row, given)).toEqual(ids);
  });

  it("agrees with a full sort, whatever the size, the ties and the truncations", () => {
    for (let round = 0; round < 300; round++) {
      const at = (draw: number): number => uniform(1, round, draw);
      const size = 1 + Math.floor(at(0) * 2000);
      // Coarse logits tie often; fine logits hardly ever.
      const steps = at(1) < 0.5 ? 4 : 2 ** 20;
      const row = Array.from({ length: size }, (_, id) => (Math.round(at(10 + id) * steps) / steps) * 12 * at(6));
      const given: Given = {
        temperature: 0.2 + 2 * at(2),
        topK: at(3) < 0.5 ? 0 : Math.ceil(at(3) * size * at(7) ** 3),
        topP: at(4) < 0.3 ? 1 : at(4),
        minP: at(5) < 0.5 ? 0 : at(5) * 0.1,
      };
      const expected = naive(row, given).map(([id]) => id);
      expect(idsOf(row, given), JSON.stringify({ round, size, steps, ...given })).toEqual(expected);
    }
  });
});
