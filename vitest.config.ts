import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type InlineConfig } from "vitest/node";

/** Suites of short files that only compute. */
const short = ["kserve", "openai"].map((suite) => `test/protocols/${suite}/**/*.test.ts`);

/** Files that look closely at how long things take, or keep both of two cores busy. */
const breaking = ["faults", "devices"].map((suite) => `test/${suite}/**/*.test.ts`);

/**
 * Files that measure what their own process holds, hold much, or change something of it. Each has
 * one to itself. All others stop what they start, so one process runs file after file: to start one
 * and load everything anew takes half a second of a core for each file.
 */
const alone = ["spec/relay", "spec/requests", "spec/subscriptions"].map(fileOf);
const breakingAlone = ["faults/large-bodies", "protocols/http/bodies", "protocols/http/connections"].map(fileOf);

/** Hundreds of connections at once, which beside another file take longer than any patience. */
const flooding = [fileOf("faults/stream-dropped")];

/**
 * Files of half a minute and more, the longest first. They are begun first, so that none runs alone
 * while a core has nothing left to do. Vitest would begin with the largest where it has never run,
 * as in CI.
 */
const long = [
  "redis/asynchronous-failover",
  "redis/failover",
  "webhooks/frozen",
  "spec/deadline",
  "redis/fleet",
  "spec/relay",
  "queue/retired-lanes",
  "jobs/later-killed",
  "docs/readme",
  "files/faults",
  "schedules/clock",
  "redis/dead-master",
  "edition/rollout",
  "edition/idle-workers",
  "cli/jobs",
  "cli/batch",
  "schedules/refused",
  "queue/random",
  "faults/large-bodies",
  "devices/choice",
  "devices/webgpu",
  "faults/parked",
  "faults/stream-gateways",
  "faults/stream-workers",
  "faults/silero",
  "faults/drain",
  "faults/many-workers",
  "faults/stream-readers",
  "faults/stream-brokers",
  "faults/stream-leaving",
  "faults/subscriptions-unpublished",
].map((name) => join(import.meta.dirname, fileOf(name)));

class LongestFirst extends BaseSequencer {
  override async sort(files: Parameters<BaseSequencer["sort"]>[0]): ReturnType<BaseSequencer["sort"]> {
    const group = (file: (typeof files)[number]) => file.project.config.sequence.groupOrder;
    const place = ({ moduleId }: (typeof files)[number]) =>
      long.includes(moduleId) ? long.indexOf(moduleId) : Infinity;
    // What it sorts stays as it is where this makes no difference.
    return (await super.sort(files)).sort((a, b) => group(a) - group(b) || compare(place(a), place(b)));
  }
}

export default defineConfig({
  resolve: { conditions: ["baton-source"] },
  ssr: { resolve: { conditions: ["baton-source"] } },
  test: {
    // These limits only say when to give up. They are far longer than a test takes on a machine
    // that does much else, so that only a fault meets them.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    pool: "forks",
    sequence: { sequencer: LongestFirst },
    globalSetup: ["test/support/fleet/global.ts"],
    projects: [
      project("beside", 0, 2, { include: ["{cli,gateway,worker,shared,infra}/**/*.test.ts"] }),
      // These mostly wait, for timers and for processes to die and start: with two files at a time
      // two cores would have nothing to do for half of the time. With four, tests begin to fail.
      project("waiting", 1, 3, {
        include: ["test/**/*.test.ts"],
        exclude: [...short, ...breaking, ...alone, ...breakingAlone],
      }),
      project("waiting, alone", 1, 3, { include: alone, isolate: true }),
      project("short", 2, 2, { include: short }),
      // What one of them has broken must not reach the next, not even late.
      project("breaking", 3, 2, { include: [...breaking, ...breakingAlone], exclude: flooding, isolate: true }),
      project("flooding", 4, 1, { include: flooding, isolate: true }),
    ],
  },
});

function project(name: string, groupOrder: number, maxWorkers: number, more: Readonly<Partial<InlineConfig>>) {
  return { extends: true as const, test: { name, isolate: false, maxWorkers, sequence: { groupOrder }, ...more } };
}

function fileOf(name: string): string {
  return `test/${name}.test.ts`;
}

/** Not their difference, which is no number where both are Infinity. */
function compare(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
