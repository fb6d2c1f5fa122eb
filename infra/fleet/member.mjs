/**
 * One process of the fleet: started, recorded, its log followed, started again when it dies. A member that dies before it was ever
 * well, several times in a row, will not get well by trying: the start gives up with its last words.
 */
import { spawn } from "node:child_process";
import { closeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Refusal } from "../setup/refusal.mjs";
import { say } from "../setup/terminal.mjs";
import { followLog, openLog, rotate } from "./log-file.mjs";
import { describe, readLine, telling } from "./log-line.mjs";
import { removeRecord, writeRecord } from "./records.mjs";
import { removeContainer } from "./stop.mjs";

/** Deaths in a row before the member was well; later in its life it is given more, since it has been well before. */
const MOST_EARLY_DEATHS = { first: 3, later: 10 };
/** A member that has no sign of being well is taken to be after this long without a death. */
const WELL_AFTER_MS = 5_000;
const PAUSE_MS = { first: 100, most: 5_000 };
/** sysexits' EX_CONFIG: the settings are wrong, and will be next time. */
const EXIT_UNUSABLE = 78;
/** Different warnings shown per minute; the log has them all. */
const MOST_WARNINGS = 10;

/**
 * @param plan `{name, program, args, env, cwd, order, graceMs, container, readyMessage,
 *   diedMessage}`;
 *   `readyMessage`: the log line that says it is well; `diedMessage`: the line that says that the
 *   process which does its work has died, and is started again by the member itself.
 * @param fleet `{records, logs, ending, giveUp(refusal)}`; while `ending`, a death is an end.
 */
export function startMember(plan, fleet) {
  const logPath = join(fleet.logs, `${plan.name}.log`);
  rotate(logPath);
  closeSync(openLog(logPath));
  let lastWords = [];
  let warnings = { minute: 0, shown: new Set() };
  let well = false;
  let everWell = false;
  let deaths = 0;
  let patience;
  let whenWell;
  const firstWell = new Promise((resolve) => (whenWell = resolve));

  const log = followLog(logPath, (text) => {
    const line = readLine(text);
    lastWords = [...lastWords, line].slice(-20);
    if (plan.readyMessage !== undefined && line.message === plan.readyMessage) becomeWell();
    if (line.isWarning && !fleet.ending) showWarning(line);
    if (plan.diedMessage !== undefined && line.message === plan.diedMessage) diedWithin(line);
  });

  function becomeWell() {
    if (everWell && !well) say(`${plan.name} is back.`);
    well = true;
    everWell = true;
    deaths = 0;
    whenWell();
  }

  function showWarning(line) {
    const minute = Math.floor(Date.now() / 60_000);
    if (warnings.minute !== minute) warnings = { minute, shown: new Set() };
    const text = describe(line);
    if (warnings.shown.has(text) || warnings.shown.size >= MOST_WARNINGS) return;
    warnings.shown.add(text);
    say(`${plan.name}: ${text}`);
    if (warnings.shown.size === MOST_WARNINGS) say(`${plan.name}: more of this minute's warnings are in ${logPath}`);
  }

  function launch() {
    if (fleet.ending) return;
    well = false;
    if (plan.container !== undefined) removeContainer(plan.container); // its name may still be taken by one that was left behind
    const out = openLog(logPath);
    // A group of its own: Ctrl-C in the terminal reaches only the start, which stops the members in order.
    const child = spawn(plan.program, plan.args, {
      env: plan.env,
      cwd: plan.cwd,
      stdio: ["ignore", out, out],
      detached: true,
    });
    closeSync(out);
    if (child.pid !== undefined) writeRecord(fleet.records, { ...plan, pid: child.pid });
    takePatience();
    let ended = false;
    const end = (how, code) => {
      if (ended) return;
      ended = true;
      clearTimeout(patience);
      if (fleet.ending) return;
      removeRecord(fleet.records, plan.name);
      log.read();
      afterDeath(how, code).catch((error) => fleet.giveUp(error));
    };
    child.once("error", (error) => end(error.message));
    child.once("exit", (code, signal) => end(signal ?? `exit status ${code}`, code));
  }

  function takePatience() {
    clearTimeout(patience);
    patience = setTimeout(becomeWell, WELL_AFTER_MS);
    patience.unref();
  }

  function diedWithin({ details }) {
    if (fleet.ending) return;
    well = false;
    deaths += 1;
    takePatience();
    const how = details.signal ?? `exit status ${details.code}`;
    if (deaths >= mostDeaths()) giveUp(how);
  }

  async function afterDeath(how, code) {
    if (!well) deaths += 1;
    if (deaths >= mostDeaths() || (code === EXIT_UNUSABLE && !everWell)) {
      giveUp(how);
      return;
    }
    say(`${plan.name} ended (${how}); starting it again.`);
    if (deaths > 0) await pause(Math.min(PAUSE_MS.first * 2 ** (deaths - 1), PAUSE_MS.most));
    launch();
  }

  function mostDeaths() {
    return everWell ? MOST_EARLY_DEATHS.later : MOST_EARLY_DEATHS.first;
  }

  function giveUp(how) {
    const times = deaths > 1 ? ` ${deaths} times in a row` : "";
    const words = telling(lastWords).map((line) => `\n  ${describe(line)}`);
    fleet.giveUp(
      new Refusal(
        `${plan.name} does not stay up (${how}${times}); its log is ${logPath}. Its last words:${words.join("")}`,
      ),
    );
  }

  launch();
  return {
    firstWell,
    /** For members whose well-being shows elsewhere than in their log. */
    becomeWell,
  };
}
