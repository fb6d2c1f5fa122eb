/** The output for the person at the terminal: lines, progress, and refusals. */

/**
 * Why `npm start` or `npm test` cannot continue, in a sentence that names the remedy. `main.mjs`
 * prints the sentence without a stack trace, and exits.
 */
export class Refusal extends Error {
  /**
   * @param {string} message
   * @param {number} [status] the exit status
   */
  constructor(message, status = 1) {
    super(message);
    this.status = status;
  }
}

/**
 * The code of a system error, such as "ENOENT"; undefined for any other error.
 *
 * @param {unknown} error
 */
export function codeOf(error) {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** @type {NodeJS.WriteStream} */
let out = process.stdout;

/** Keeps standard output free for the result of a program. */
export function useStandardError() {
  out = process.stderr;
}

/** The progress line on the screen, without a line end; empty if there is no such line. */
let live = "";

/** @param {string} line */
export function say(line) {
  clearLive();
  out.write(`${line}\n`);
  if (live !== "") out.write(live);
}

/**
 * Does `work`. If `work` takes longer than a second, the terminal shows the label with the seconds
 * so far, and at the end whether `work` succeeded.
 *
 * @template T
 * @param {string} label
 * @param {() => Promise<T>} work
 */
export async function step(label, work) {
  const startedAt = performance.now();
  const seconds = () => Math.round((performance.now() - startedAt) / 1000);
  let ticks = 0;
  const ticker = setInterval(() => {
    ticks += 1;
    // A pipe or a CI log gets whole lines only: no cursor movement and no redrawn line.
    if (out.isTTY) showLive(`${label} … ${seconds()} s`);
    else if (ticks === 1) say(`${label} …`);
    else if (ticks % 15 === 0) say(`${label} … ${seconds()} s`);
  }, 1000);
  let ending = "failed after";
  try {
    const result = await work();
    ending = "done in";
    return result;
  } finally {
    clearInterval(ticker);
    clearLive();
    live = "";
    if (ticks > 0) say(`${label}: ${ending} ${seconds()} s`);
  }
}

/** @param {string} line */
function showLive(line) {
  clearLive();
  live = line;
  out.write(line);
}

function clearLive() {
  if (live !== "") out.write("\r\x1b[2K");
}
