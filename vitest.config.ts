import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer } from "vitest/node";

/**
 * Suites whose tests mostly wait, for timers and for processes to die and start: two files at a
 * time would leave two cores idle for a third of the time. The others compute, or look closely at
 * how long things take.
 */
const waiting = ["cli", "clients", "docs", "edition", "jobs", "redis", "spec", "webhooks"].map(
  (suite) => `test/${suite}/**/*.test.ts`,
);

/** Suites of short files that stop all that they start, and change nothing of the process. */
const short = ["kserve", "openai"].map((suite) => `test/protocols/${suite}/**/*.test.ts`);

/**
 * Files of half a minute and more. They are begun first, so that none runs alone while a core has
 * nothing left to do. Vitest would begin with the largest where it has never run, as in CI.
 */
const long = [
  "redis/failover",
  "redis/asynchronous-failover",
  "cli/verbs",
  "spec/deadline",
  "jobs/later-killed",
  "webhooks/frozen",
  "spec/relay",
  "redis/fleet",
  "edition/rollout",
  "edition/limits",
  "redis/dead-master",
  "faults/parked",
  "faults/drain",
  "faults/silero",
  "faults/stream-workers",
  "faults/many-workers",
  "faults/large-bodies",
  "faults/stream-gateways",
  "schedules/clock",
  "devices/choice",
  "files/faults",
  "queue/without-nats",
  "queue/random",
  "queue/retired-lanes",
].map((name) => join(import.meta.dirname, `test/${name}.test.ts`));

class LongestFirst extends BaseSequencer {
  override async sort(files: Parameters<BaseSequencer["sort"]>[0]): ReturnType<BaseSequencer["sort"]> {
    const rest = (file: (typeof files)[number]) => (long.includes(file.moduleId) ? 0 : 1);
    const order = (file: (typeof files)[number]) => file.project.config.sequence.groupOrder;
    // What it sorts stays as it is where this makes no difference.
    return (await super.sort(files)).sort((a, b) => order(a) - order(b) || rest(a) - rest(b));
  }
}

export default defineConfig({
  resolve: { conditions: ["baton-source"] },
  ssr: { resolve: { conditions: ["baton-source"] } },
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // A poll waits for an event; its limit only says when to give up. Vitest's one second is less
    // than a slow machine takes to connect anew.
    expect: { poll: { timeout: 20_000 } },
    pool: "forks",
    sequence: { sequencer: LongestFirst },
    globalSetup: ["test/support/fleet/global.ts"],
    projects: [
      {
        // Those beside their files open no port and leave nothing behind, so one process runs file
        // after file: to start one and load everything anew takes longer than most of them.
        extends: true,
        test: {
          name: "beside",
          include: ["{cli,gateway,worker,shared,infra}/**/*.test.ts"],
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      { extends: true, test: { name: "waiting", include: waiting, maxWorkers: 3, sequence: { groupOrder: 1 } } },
      {
        extends: true,
        test: {
          // As those beside their files: most take less time than a process to start for them.
          name: "short",
          include: short,
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: "breaking",
          include: ["test/**/*.test.ts"],
          exclude: [...waiting, ...short],
          maxWorkers: 2,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
