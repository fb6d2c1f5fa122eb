/**
 * The entry of `npm start`, `npm test` and `npm run test:faults`. This file and all of its imports
 * are plain JavaScript without packages, because installing the packages is part of the work.
 */
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error("Baton needs Node.js 20.19 or newer (24 is a good choice); this is " + process.versions.node + ".");
  process.exit(1);
}

// These imports are dynamic: an old Node might fail to parse the files, and then it would never
// print the sentence above. For the same reason this file uses no recent syntax.
const { Refusal } = await import("./setup/terminal.mjs");
const { start } = await import("./fleet/start.mjs");
const { runTests } = await import("./run-tests.mjs");

try {
  const [command, ...args] = process.argv.slice(2);
  if (command === "test") await runTests("test", args);
  else if (command === "test:faults") await runTests("faults", args);
  else await start();
} catch (error) {
  // A refusal names the remedy; a stack trace is only for a mistake in this code.
  console.error(error instanceof Refusal ? "\n" + error.message : error);
  process.exit(error instanceof Refusal ? error.status : 1);
}
