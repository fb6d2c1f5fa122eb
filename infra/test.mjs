/** `npm test`: the same set-up as `npm start`, then vitest with the arguments given; ends with the line that CI reads. */
import "./setup/node-version.mjs";

const { runMain } = await import("./setup/refusal.mjs");
const { runTests } = await import("./setup/run-tests.mjs");
await runMain(() => runTests(process.argv.slice(2)));
