import { describe, expect, it } from "vitest";
import { figures, type Round } from "../figures.js";

const pace = (scale: number) => ({
  tokensPerSecond: 1_000 / scale,
  firstTokenMs: { p50: 4 * scale, p95: 5 * scale, p99: 6 * scale },
  betweenTokensMs: { p50: scale, p95: 2 * scale, p99: 3 * scale },
  meanBetweenMs: { p50: 2 * scale, p95: 2 * scale, p99: 2 * scale },
  cpuUs: { gateway: 1, "worker I/O": 2, "worker model": 3, redis: 4, nats: 5, load: 6 },
  others: 0,
  checked: 1,
  wrong: 0,
});

function named(rounds: readonly Partial<Round>[], name: string): number | undefined {
  return figures(rounds).find((figure) => figure.name.endsWith(name))?.median;
}

describe("figures of generation", () => {
  it("divides values of one round", () => {
    const rounds: Partial<Round>[] = [
      { streamOne: pace(4), bareStreamOne: { ...pace(2), cpuUs: 1 }, streamSixteen: pace(1) },
      { streamOne: pace(6), bareStreamOne: { ...pace(3), cpuUs: 1 }, streamSixteen: pace(1) },
    ];
    expect(named(rounds, "1 stream, fleet ÷ bare: tokens/s")).toBeCloseTo(0.5);
    expect(named(rounds, "  between tokens p99")).toBeCloseTo(2);
    expect(named(rounds, "tokens/s: 16 streams ÷ 1")).toBeCloseTo(5);
  });

  it("shows the worst pause of a round and the usual cost at each length of history", () => {
    const kill = (ms: number, logged: number) => ({ pauseBeyondLeaseMs: ms, costMs: ms + 1, logged });
    const takeovers = [
      { history: 100, kills: [kill(20, 101), kill(90, 104), kill(-40, 102)] },
      { history: 2_000, kills: [kill(150, 2_003)] },
    ];
    const recompute = [{ history: 2_000, wholeMs: 70, chunksMs: 50 }];
    const rounds = [{ takeover: { leaseMs: 1_000, takeovers, recompute, checked: 4, wrong: 0 } }];
    expect(named(rounds, "killed at 100 tokens: longest pause − lease, ms")).toBe(90);
    expect(named(rounds, "killed at 500 tokens: longest pause − lease, ms")).toBeUndefined();
    expect(named(rounds, "killed at 2000 tokens: longest pause − lease, ms")).toBe(150);
    expect(named(rounds, "  from the lease's end to a new token, ms")).toBe(21);
    expect(named(rounds, "passes of 256, ms")).toBe(50);
  });
});
