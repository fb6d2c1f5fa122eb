import { expect, it } from "vitest";
import { intraOpThreads } from "./thread-count.js";

it.each([
  { wanted: 3, cores: 2, threads: 3 },
  { wanted: 0, cores: 8, threads: 7 },
  { wanted: 0, cores: 2, threads: 1 },
  { wanted: 0, cores: 1, threads: 1 },
])("$wanted wanted on $cores cores are $threads", ({ wanted, cores, threads }) => {
  expect(intraOpThreads(wanted, cores)).toBe(threads);
});
