/**
 * `npm test` and `npm run test:faults`: the same set-up as `npm start`, then vitest with the given
 * arguments. CI reads the last line of the output, "N passed, M failed", and the lines "failed: …"
 * before it, which name each failure once more, since a log of CI is often read from its end.
 */
import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { brokerKinds, brokerNames } from "./setup/broker-kinds.mjs";
import { root } from "./setup/paths.mjs";
import { prepare } from "./setup/prepare.mjs";
import { say } from "./setup/terminal.mjs";

/**
 * @param {"test" | "faults"} suite
 * @param {string[]} args arguments for vitest, such as a part of a test file's name
 */
export async function runTests(suite, args) {
  const { home, brokers } = await prepare(process.env, { programsOnly: true });
  process.env["PATH"] = pathWith(brokers, home);
  // Imported here and not above, because `prepare` may have just installed vitest.
  const { parseCLI, startVitest } = await import("vitest/node");
  const { filter, options } = parseCLI(["vitest", "run", ...args]);
  if (args.includes("--help")) return;
  // A filter of `npm test` may name files of `test/faults`, too.
  if (suite === "faults" || filter.length === 0) process.env["BATON_SUITE"] = suite;

  const counts = { passed: 0, skipped: 0 };
  /** @type {string[]} */
  const failures = [];
  process.once("exit", (code) => {
    // A run that broke down before any test is a failure too, and must not read as "0 failed".
    if (code !== 0 && failures.length === 0) failures.push("the run itself");
    if (counts.skipped > 0) say(`${counts.skipped} skipped`);
    if (suite === "test") say("`npm run test:faults` runs the tests that kill, freeze, flood and fail over");
    for (const failure of failures) say(`failed: ${failure}`);
    say(`${counts.passed} passed, ${failures.length} failed`);
  });
  // By default these signals would end the process without its "exit" event.
  process.once("SIGINT", () => process.exit(130));
  process.once("SIGTERM", () => process.exit(143));
  process.once("SIGHUP", () => process.exit(129));

  const vitest = await startVitest("test", filter, { root, ...options });
  for (const error of vitest.state.getUnhandledErrors()) failures.push(`outside of tests: ${messageOf(error)}`);
  for (const module of vitest.state.getTestModules()) {
    // A file that cannot be loaded, or a suite whose set-up fails, has no failed test to show.
    for (const part of [module, ...module.children.allSuites()]) {
      const [error] = part.errors();
      if (error)
        failures.push(
          `${"fullName" in part ? `${module.relativeModuleId}: ${part.fullName}` : part.relativeModuleId}: ${messageOf(error)}`,
        );
    }
    for (const test of module.children.allTests()) {
      const { state, errors } = test.result();
      if (state === "failed") failures.push(`${module.relativeModuleId}: ${test.fullName}: ${messageOf(errors[0])}`);
      else counts[state === "passed" ? state : "skipped"] += 1;
    }
  }
  if (failures.length > 0) process.exitCode ||= 1;
  await vitest.exit();
}

/**
 * The message of an error on one line, cut to what names it.
 *
 * @param {unknown} error
 */
function messageOf(error) {
  const message = error && typeof error === "object" && "message" in error ? error.message : error;
  return String(message).replaceAll(/\s+/g, " ").slice(0, 300);
}

/**
 * Tests start the servers by their usual names, from any folder; Valkey gets the name of Redis. So
 * the PATH begins with a folder of links.
 *
 * @param {Awaited<ReturnType<typeof prepare>>["brokers"]} brokers
 * @param {string} home
 */
function pathWith(brokers, home) {
  const folder = join(home, "bin");
  mkdirSync(folder, { recursive: true });
  for (const name of brokerNames) {
    const broker = brokers[name];
    if (!("program" in broker)) continue;
    const link = join(folder, brokerKinds[name].programs[0]);
    rmSync(link, { force: true });
    symlinkSync(broker.program, link);
  }
  return [folder, dirname(process.execPath), process.env["PATH"]].filter(Boolean).join(delimiter);
}
