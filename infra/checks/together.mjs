/**
 * `npm run check`: runs all checks of the tree that need no test, side by side, as many at a time
 * as there are cores. The output of a check appears as a whole, at the check's end.
 */
import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";

/** The scripts of package.json, the longest first. */
const checks = ["format", "lint", "types", "unused", "docs", "house"];

/**
 * @param {string} name
 * @returns {Promise<boolean>} whether the check has found no fault
 */
async function run(name) {
  const child = spawn("npm", ["run", "--silent", `check:${name}`], { stdio: ["ignore", "pipe", "pipe"] });
  /** @type {Buffer[]} */
  const printed = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => printed.push(bytes));
  const startedAt = performance.now();
  const code = await new Promise((resolve) => {
    child.once("error", () => resolve(1));
    child.once("close", resolve);
  });
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  process.stdout.write(`check:${name}: ${code === 0 ? "ok" : "failed"} in ${seconds} s\n`);
  if (code !== 0) process.stdout.write(Buffer.concat(printed));
  return code === 0;
}

const waiting = [...checks];
let isWell = true;
async function runSome() {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) isWell = (await run(name)) && isWell;
}
await Promise.all(Array.from({ length: availableParallelism() }, runSome));
process.exitCode = isWell ? 0 : 1;
