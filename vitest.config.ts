import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { conditions: ["baton-source"] },
  ssr: { resolve: { conditions: ["baton-source"] } },
  test: {
    include: ["{cli,gateway,worker,shared,infra}/**/*.test.ts", "test/**/*.test.ts"],
    globalSetup: ["test/support/fleet/global.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // A poll waits for an event; its limit only says when to give up. Vitest's one second is less
    // than a slow machine takes to connect anew.
    expect: { poll: { timeout: 20_000 } },
    pool: "forks",
    maxWorkers: 2,
  },
});
