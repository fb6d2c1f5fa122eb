/** What the person at the terminal is told: lines, progress, and why Baton cannot go on. */

/**
 * Why `npm start` or `npm test` cannot go on, in a sentence that says what to do. It is printed as
 * it is, without a stack trace, and the process exits.
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

/** A pipe or a CI log gets whole lines only: no cursor movement and no line that is redrawn. */
const tty = process.stdout.isTTY;

/** The progress line that is on the screen without a line end; empty when there is none. */
let live = "";

/** @param {string} line */
export function say(line) {
  clearLive();
  process.stdout.write(`${line}\n`);
  if (live !== "") process.stdout.write(live);
}

/**
 * Does `work`. If that takes longer than a second, the terminal shows the label with the seconds
 * that have gone by, and at the end whether it was done.
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
    if (tty) showLive(`${label} … ${seconds()} s`);
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
  process.stdout.write(line);
}

function clearLive() {
  if (live !== "") process.stdout.write("\r\x1b[2K");
}
