import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { conditions: ["source"] },
  ssr: { resolve: { conditions: ["source"] } },
  test: {
    include: ["{gateway,worker,shared,infra}/**/*.test.ts", "test/**/*.test.ts"],
    globalSetup: ["test/setup/global.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: "forks",
    maxWorkers: 2,
    // Packages with a "source" of their own, or that import one: node would not take its TypeScript.
    server: { deps: { inline: [/eventsource-parser/, /@ai-sdk/, /node_modules\/ai\//] } },
  },
});
