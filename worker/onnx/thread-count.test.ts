import { expect, it } from "vitest";
import { intraOpThreads } from "./thread-count.js";

it.each([
  { wanted: 3, instances: 2, cores: 2, threads: 3 },
  { wanted: 0, instances: 1, cores: 8, threads: 7 },
  { wanted: 0, instances: 1, cores: 2, threads: 1 },
  { wanted: 0, instances: 1, cores: 1, threads: 1 },
  { wanted: 0, instances: 0, cores: 8, threads: 7 },
  { wanted: 0, instances: 2, cores: 8, threads: 3 },
  { wanted: 0, instances: 9, cores: 8, threads: 1 },
])("$wanted wanted for each of $instances instances on $cores cores are $threads", (row) => {
  expect(intraOpThreads(row.wanted, row.instances, row.cores)).toBe(row.threads);
});
