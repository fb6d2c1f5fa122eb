/**
 * A process of the fleet: starts and records the process, follows its log, and starts it again
 * after a death. If a member dies several times in a row before it was ever up, another try would
 * not help. Then the whole start gives up with the member's last words.
 */
import { spawn } from "node:child_process";
import { closeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Refusal, say } from "../setup/terminal.mjs";
import { EXIT_UNUSABLE } from "./settings.mjs";
import { describe, followLog, openLog, readLine, rotate, telling } from "./log.mjs";
import { removeContainer } from "./stop.mjs";

/** @typedef {import("./log.mjs").LogLine} LogLine */

/**
 * @typedef {object} Fleet the state that all members share
 * @property {import("./records.mjs").Records} records
 * @property {string} logs the folder of the logs
 * @property {boolean} ending the fleet stops, so no process starts any more
 * @property {Set<string>} told warnings that hold as long as the fleet runs and that the terminal
 *   has shown; each process repeats these warnings at each start
 * @property {(why: unknown) => void} giveUp ends the start, with a refusal if a person can mend it
 */

/** Deaths in a row after which the start gives up: fewer for a member that has never been up. */
const MAX_DEATHS = { neverUp: 3, beenUp: 10 };
/** A member that has not died for this long counts as up, even if its log does not say so. */
const UP_AFTER_MS = 5_000;
/** The pause before the second start in a row, in ms; it doubles up to the longest pause. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
/** Most different warnings that the terminal shows in a minute; the log has all. */
const MAX_WARNINGS = 10;

/**
 * @param {import("./processes.mjs").Plan} plan
 * @param {Fleet} fleet
 * @returns {{ firstUp: Promise<void>, setUp: () => void }} `firstUp` resolves when the member is up
 *   for the first time; `setUp` is for a member whose log has no such line
 */
export function startMember(plan, fleet) {
  const logPath = join(fleet.logs, `${plan.name}.log`);
  /** @type {LogLine[]} the latest lines of its log */
  let lastWords = [];
  /** The warnings that the terminal has shown in the current minute. */
  let warnings = { minute: 0, shown: new Set() };
  let isUp = false;
  let wasEverUp = false;
  /** Deaths in a row; 0 once the member is up. */
  let deaths = 0;
  /** @type {NodeJS.Timeout | undefined} runs until a member that says nothing counts as up */
  let patience;
  let tellFirstUp = () => {};
  /** @type {Promise<void>} */
  const firstUp = new Promise((resolve) => (tellFirstUp = resolve));

  rotate(logPath);
  closeSync(openLog(logPath));
  const readLog = followLog(logPath, (text) => {
    const line = readLine(text);
    lastWords = [...lastWords, line].slice(-20);
    if (plan.readyMessage !== undefined && line.message === plan.readyMessage) setUp();
    if (line.isWarning && !fleet.ending) showWarning(line);
    if (plan.diedMessage !== undefined && line.message === plan.diedMessage) afterDeathWithin(line);
  });

  function setUp() {
    if (wasEverUp && !isUp) say(`${plan.name} is back.`);
    isUp = true;
    wasEverUp = true;
    deaths = 0;
    tellFirstUp();
  }

  function showWarning(/** @type {LogLine} */ line) {
    const minute = Math.floor(Date.now() / 60_000);
    if (warnings.minute !== minute) warnings = { minute, shown: new Set() };
    const { model, warning } = line.details;
    // A configuration may cause a dozen warnings, and each worker that loads it repeats all.
    const isOfConfig = typeof warning === "string" && typeof model === "string";
    const text = isOfConfig
      ? `model ${model} is served, but its configuration is not taken as it is written: see ${logPath}, or /v2/fleet`
      : describe(line);
    const fact = isOfConfig ? `the configuration of ${model}` : line.message;
    if (fleet.told.has(fact) || warnings.shown.has(text) || warnings.shown.size >= MAX_WARNINGS) return;
    warnings.shown.add(text);
    if (isOfConfig) fleet.told.add(fact);
    say(`${plan.name}: ${text}`);
    if (warnings.shown.size === MAX_WARNINGS) say(`${plan.name}: more of this minute's warnings are in ${logPath}`);
  }

  function launch() {
    if (fleet.ending) return;
    isUp = false;
    // A container of an earlier start may still have the name.
    if (plan.container !== undefined) removeContainer(plan.container);
    const out = openLog(logPath);
    // The child leads a new process group, so Ctrl-C in the terminal reaches only the start, which
    // stops the members in order.
    const child = spawn(plan.program, plan.args, {
      env: plan.env,
      cwd: plan.cwd,
      stdio: ["ignore", out, out],
      detached: true,
    });
    closeSync(out);
    if (child.pid !== undefined) fleet.records.add(plan, child.pid);
    restartPatience();
    let hasEnded = false;
    const end = (/** @type {string} */ how, /** @type {number | null} */ code) => {
      if (hasEnded) return;
      hasEnded = true;
      clearTimeout(patience);
      if (fleet.ending) return;
      fleet.records.remove(plan.name);
      readLog();
      afterDeath(how, code).catch(fleet.giveUp);
    };
    child.once("error", (error) => end(error.message, null));
    child.once("exit", (code, signal) => end(signal ?? `exit status ${code}`, code));
  }

  function restartPatience() {
    clearTimeout(patience);
    patience = setTimeout(setUp, UP_AFTER_MS);
    patience.unref();
  }

  /** The process that does the member's work has died; the member itself restarts that process. */
  function afterDeathWithin(/** @type {LogLine} */ { details }) {
    if (fleet.ending) return;
    isUp = false;
    deaths += 1;
    restartPatience();
    const { signal, code } = details;
    if (deaths >= maxDeaths()) giveUp(typeof signal === "string" ? signal : `exit status ${Number(code)}`);
  }

  async function afterDeath(/** @type {string} */ how, /** @type {number | null} */ code) {
    if (!isUp) deaths += 1;
    if (deaths >= maxDeaths() || (code === EXIT_UNUSABLE && !wasEverUp)) {
      giveUp(how);
      return;
    }
    say(`${plan.name} ended (${how}); starting it again.`);
    if (deaths > 0) await pause(Math.min(FIRST_PAUSE_MS * 2 ** (deaths - 1), LONGEST_PAUSE_MS));
    launch();
  }

  function maxDeaths() {
    return wasEverUp ? MAX_DEATHS.beenUp : MAX_DEATHS.neverUp;
  }

  function giveUp(/** @type {string} */ how) {
    const times = deaths > 1 ? ` ${deaths} times in a row` : "";
    const words = telling(lastWords).map((line) => `\n  ${describe(line)}`);
    fleet.giveUp(
      new Refusal(
        `${plan.name} does not stay up (${how}${times}); its log is ${logPath}. Its last words:${words.join("")}`,
      ),
    );
  }

  launch();
  return { firstUp, setUp };
}
