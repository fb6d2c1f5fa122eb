/** Lines for the person at the terminal. A pipe or a CI log gets whole lines only: no cursor movement, no spinner. */

const tty = process.stdout.isTTY === true;

/** The progress line that is on the screen without a line end; empty when there is none. */
let live = "";

function clearLive() {
  if (live !== "") process.stdout.write("\r\x1b[2K");
}

export function say(line) {
  clearLive();
  process.stdout.write(`${line}\n`);
  if (live !== "") process.stdout.write(live);
}

function showLive(line) {
  clearLive();
  live = line;
  process.stdout.write(line);
}

/** Does `work`; if it takes longer than a second, says so, with the seconds that went by. */
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
