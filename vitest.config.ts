import { defineConfig } from "vitest/config";

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
    // The tests that take longest wait for timers and for processes to die and start, so two at a
    // time leave a machine of two cores idle for a quarter of the time.
    maxWorkers: 3,
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
        },
      },
      { extends: true, test: { name: "test", include: ["test/**/*.test.ts"] } },
    ],
  },
});
