/**
 * Runs a program to its end, with its output in a log file. The terminal shows only a progress
 * line, and the end of the output if the program failed.
 */
import { spawn } from "node:child_process";
import { createWriteStream, existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { root } from "./paths.mjs";
import { Refusal } from "./terminal.mjs";

/** @type {Set<import("node:child_process").ChildProcess>} */
const running = new Set();
process.once("exit", () => {
  for (const child of running) child.kill("SIGTERM");
});

/** Characters of the output's end that the message about a failure may show. */
const TAIL_CHARS = 4_000;

/**
 * Never rejects, and never reads from the terminal.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, log?: string, timeoutMs?: number }} [options]
 *   `log`: a file to which the output is appended
 * @returns {Promise<{ code: number, output: string }>} the exit status (-1 if the program did not
 *   start or a signal ended it) and the end of the output
 */
export function runCommand(program, args, { cwd = root, env = process.env, log, timeoutMs = 0 } = {}) {
  return new Promise((resolve) => {
    let tail = "";
    const file = log === undefined ? undefined : openLog(log);
    file?.write(`\n$ ${program} ${args.join(" ")}\n`);
    const child = spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], timeout: timeoutMs });
    running.add(child);
    const take = (/** @type {Buffer} */ chunk) => {
      file?.write(chunk);
      tail = (tail + chunk.toString()).slice(-TAIL_CHARS);
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    const end = (/** @type {number} */ code) => {
      running.delete(child);
      file?.end();
      resolve({ code, output: tail.trim() });
    };
    child.once("error", (error) => {
      tail += error.message;
      end(-1);
    });
    child.once("close", (code) => end(code ?? -1));
  });
}

/** @param {string} path */
function openLog(path) {
  mkdirSync(dirname(path), { recursive: true });
  const file = createWriteStream(path, { flags: "a" });
  file.on("error", () => {}); // a failed write of the log must not fail the program
  return file;
}

/**
 * Runs the npm that runs this script, or else the npm on the PATH: a user with several versions of
 * npm has chosen a version.
 *
 * @param {readonly string[]} args
 * @param {string} log
 * @throws {Refusal} if there is no npm
 */
export async function npm(args, log) {
  const own = process.env["npm_execpath"];
  const isKnown = own?.endsWith("npm-cli.js") === true && existsSync(own);
  const result = isKnown
    ? await runCommand(process.execPath, [own, ...args], { log })
    : await runCommand("npm", args, { log });
  if (result.code === -1 && result.output.includes("ENOENT"))
    throw new Refusal(
      `There is no npm on the PATH, and \`npm ${args.join(" ")}\` has to run: install npm (it comes with Node.js).`,
    );
  return result;
}

/**
 * The last lines of a program's output, indented, for the end of a refusal.
 *
 * @param {string} output
 * @param {number} [count]
 */
export function lastLines(output, count = 6) {
  return output
    .split("\n")
    .filter((line) => line.trim() !== "")
    .slice(-count)
    .map((line) => `  ${line.slice(0, 300)}`)
    .join("\n");
}
