import { defineConfig } from "vitest/config";

/**
 * Suites whose tests mostly wait, for timers and for processes to die and start: two files at a
 * time would leave two cores idle for a third of the time. The others compute, or look closely at
 * how long things take.
 */
const waiting = ["cli", "clients", "docs", "edition", "jobs", "redis", "spec", "webhooks"].map(
  (suite) => `test/${suite}/**/*.test.ts`,
);

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
          name: "breaking",
          include: ["test/**/*.test.ts"],
          exclude: waiting,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
