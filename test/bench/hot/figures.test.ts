import { expect, it } from "vitest";
import { figures, type Round } from "../figures.js";

const cost = (us: number, others: number) => ({
  tokensPerSecond: 1_000 / us,
  firstTokenMs: { p50: 1, p95: 1, p99: 1 },
  betweenTokensMs: { p50: 1, p95: 1, p99: 1 },
  meanBetweenMs: { p50: 1, p95: 1, p99: 1 },
  cpuUs: { gateway: us, "worker I/O": us, "worker model": us, redis: us, nats: us, load: 1_000 },
  others,
  checked: 1,
  wrong: 0,
});

it("judges the ratio of two builds within a round, and names a disturbed machine", () => {
  const rounds: Partial<Round>[] = [
    { hotSse: { here: cost(8, 0.01), there: cost(10, 0.2), checked: 2, wrong: 0 } },
    { hotSse: { here: cost(30, 0.01), there: cost(20, 0.2), checked: 2, wrong: 0 } },
    { hotSse: { here: cost(11, 0.01), there: cost(10, 0.2), checked: 2, wrong: 0 } },
  ];
  const found = figures(rounds);
  expect(found.slice(0, 3).map(({ values, met }) => [values, met])).toEqual([
    [[40, 150, 55], undefined],
    [[50, 100, 50], undefined],
    [[0.8, 1.5, 1.1], false],
  ]);
  const at = found.findIndex(({ name }) => name.includes("others took"));
  expect(found.slice(at, at + 2).map(({ met }) => met)).toEqual([true, false]);
});
