/** Runs vitest on a machine that may have had nothing but Node a minute ago. */
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brokerKinds } from "./broker-kinds.mjs";
import { root } from "./paths.mjs";
import { prepare } from "./prepare.mjs";
import { say } from "./terminal.mjs";

export async function runTests(args) {
  const { home, brokers } = await prepare(process.env, { programsOnly: true });
  const countsFile = join(home, `test-counts-${process.pid}.json`);
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const reporters = ["default", fileURLToPath(new URL("./count-reporter.mjs", import.meta.url))];
  const child = spawn(process.execPath, [vitest, "run", ...reporters.map((one) => `--reporter=${one}`), ...args], {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, PATH: pathWith(brokers, home), BATON_TEST_COUNTS: countsFile },
  });
  // The terminal has signalled vitest as well; npm and CI signal only us.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  const code = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status) => resolve(status ?? 1));
  });
  const counts = readCounts(countsFile);
  // A run that broke down before any test is a failure too, and must not read as "0 failed".
  const failed = code !== 0 && counts.failed === 0 ? 1 : counts.failed;
  if (counts.skipped > 0) say(`${counts.skipped} skipped`);
  say(`${counts.passed} passed, ${failed} failed`);
  process.exitCode = code === 0 && failed > 0 ? 1 : code;
}

/** Tests call the servers by their usual names, wherever they were found; Valkey answers to Redis' name. */
function pathWith(brokers, home) {
  const folder = join(home, "bin");
  mkdirSync(folder, { recursive: true });
  for (const [name, { program }] of Object.entries(brokers)) {
    const link = join(folder, brokerKinds[name].programs[0]);
    rmSync(link, { force: true });
    symlinkSync(program, link);
  }
  return [folder, dirname(process.execPath), process.env.PATH].filter(Boolean).join(delimiter);
}

function readCounts(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return { passed: 0, failed: 0, skipped: 0 }; // vitest never came to its end
  } finally {
    rmSync(file, { force: true });
  }
}
