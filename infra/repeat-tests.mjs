/**
 * Runs a suite again and again in a clean clone of the last commit, and prints a line for each run,
 * so that failures by chance show. It reports every run, and repeats no failed test.
 *
 *     node infra/repeat-tests.mjs --runs 12 [--faults] [--beside-load] [--in FOLDER] [--to FILE]
 *                                 [part of a test file's name]
 *
 * FOLDER is on the disk to test, and FILE gets the lines, too. The output of a run with failures
 * goes to a file beside FILE, named FILE.<run>.log.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { parseArgs } from "node:util";
import { root } from "./setup/paths.mjs";
import { say } from "./setup/terminal.mjs";

const { values: given, positionals: filter } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: "string", default: "1" },
    faults: { type: "boolean", default: false },
    "beside-load": { type: "boolean", default: false },
    in: { type: "string", default: tmpdir() },
    to: { type: "string", default: join(root, ".baton", "repeated-tests.md") },
  },
});
const runs = Number(given.runs);
if (!Number.isSafeInteger(runs) || runs < 1) throw new Error("--runs is a whole number from 1");

const suite = given.faults ? "test:faults" : "test";
const folder = mkdtempSync(join(given.in, "baton-repeat-"));
const clone = join(folder, "clone");
const temporary = join(folder, "tmp");
mkdirSync(temporary);
mkdirSync(dirname(given.to), { recursive: true });
execFileSync("git", ["clone", "--quiet", root, clone]);
const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd: clone, encoding: "utf8" }).trim();
execFileSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: clone, stdio: "inherit" });

const load = given["beside-load"] ? spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" }) : undefined;
process.once("exit", () => load?.kill("SIGKILL"));
for (const [signal, code] of /** @type {const} */ ([
  ["SIGINT", 130],
  ["SIGTERM", 143],
])) {
  process.once(signal, () => process.exit(code));
}

note(
  `\n\`${["npm run", suite, ...filter].join(" ")}\` of ${commit}${load ? ", beside a process that keeps a core busy" : ""}, in ${given.in}:\n`,
);
note("| run | minutes | passed | failed | skipped | failed tests |");
note("| --- | --- | --- | --- | --- | --- |");
let isGreen = true;
for (let run = 1; run <= runs; run += 1) isGreen = (await runOnce(run)) && isGreen;
rmSync(folder, { recursive: true, force: true });
process.exit(isGreen ? 0 : 1);

/**
 * Runs the suite in a process group of its own, which ends with this process.
 *
 * @param {number} run
 * @returns {Promise<boolean>} whether it was green
 */
async function runOnce(run) {
  const report = join(folder, "report.json");
  rmSync(report, { force: true });
  const startedAt = performance.now();
  const child = spawn(
    "npm",
    ["run", "--silent", suite, "--", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`, ...filter],
    {
      cwd: clone,
      env: { ...process.env, TMPDIR: temporary },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    },
  );
  const end = () => child.pid !== undefined && process.kill(-child.pid, "SIGKILL");
  process.once("exit", end);
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text) => (stderr += text));
  const [status] = await once(child, "close");
  process.off("exit", end);
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1);
  const [, passed = "0", failed = "1"] = /^(\d+) passed, (\d+) failed\n*$/m.exec(lastLine(stdout)) ?? [];
  const skipped = /^(\d+) skipped$/m.exec(stdout)?.[1] ?? "0";
  note(`| ${run} | ${minutes} | ${passed} | ${failed} | ${skipped} | ${failures(report).join("; ") || "–"} |`);
  if (status !== 0) writeFileSync(`${given.to}.${run}.log`, `${stdout}\n${stderr}`);
  return status === 0;
}

/** @param {string} text */
function lastLine(text) {
  return text.trimEnd().split("\n").at(-1) ?? "";
}

/**
 * The failed tests of a run, and the test files that failed to load.
 *
 * @param {string} report
 * @returns {string[]}
 */
function failures(report) {
  /** @type {import("vitest/node").JsonTestResults} */
  let told;
  try {
    told = JSON.parse(readFileSync(report, "utf8"));
  } catch {
    return ["the run left no report"];
  }
  return told.testResults
    .filter(({ status }) => status === "failed")
    .flatMap(({ name, assertionResults }) => {
      const titles = assertionResults.filter(({ status }) => status === "failed").map(({ fullName }) => fullName);
      return [`${relative(clone, name)}: ${titles.join(", ") || "could not be run"}`.replaceAll("|", "\\|")];
    });
}

/** @param {string} line */
function note(line) {
  say(line);
  appendFileSync(given.to, `${line}\n`);
}
