/** Runs a program to its end, with its output in a log: the terminal shows a progress line, and the output only when it failed. */
import { spawn } from "node:child_process";
import { createWriteStream, mkdirSync } from "node:fs";
import { dirname } from "node:path";

const running = new Set();
process.once("exit", () => {
  for (const child of running) child.kill("SIGTERM");
});

/** The last this many characters of output are kept for the sentence that explains a failure. */
const TAIL_CHARS = 4_000;

/** Resolves with the exit status (-1: it could not be started) and the end of its output. Never rejects, never reads the terminal. */
export function runCommand(program, args, { cwd, env = process.env, log, timeoutMs } = {}) {
  return new Promise((resolve) => {
    let tail = "";
    let file;
    if (log !== undefined) {
      mkdirSync(dirname(log), { recursive: true });
      file = createWriteStream(log, { flags: "a" });
      file.on("error", () => {}); // a log that cannot be written must not fail what it describes
      file.write(`\n$ ${program} ${args.join(" ")}\n`);
    }
    const child = spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"], timeout: timeoutMs });
    running.add(child);
    const take = (chunk) => {
      file?.write(chunk);
      tail = (tail + chunk.toString()).slice(-TAIL_CHARS);
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    const end = (code) => {
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

/** The last lines of a program's output, indented, for the end of a refusal. */
export function lastLines(output, count = 6) {
  return output
    .split("\n")
    .filter((line) => line.trim() !== "")
    .slice(-count)
    .map((line) => `  ${line.slice(0, 300)}`)
    .join("\n");
}
