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
import { Warnings } from "./warnings.mjs";

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

class Member {
  #plan;
  #fleet;
  #logPath;
  #readLog;
  #warnings;
  /** @type {LogLine[]} the latest lines of its log */
  #lastWords = [];
  #isUp = false;
  #wasEverUp = false;
  /** Whether its log has said that it is up. On a busy machine it may only have begun to load. */
  #saidReady = false;
  /** Deaths in a row; 0 once the member is up. */
  #deaths = 0;
  /** @type {NodeJS.Timeout | undefined} runs until a member that says nothing counts as up */
  #patience;
  #tellFirstUp = () => {};
  /** @type {Promise<void>} resolves when the member is up for the first time */
  firstUp = new Promise((resolve) => (this.#tellFirstUp = resolve));

  /**
   * @param {import("./processes.mjs").Plan} plan
   * @param {Fleet} fleet
   */
  constructor(plan, fleet) {
    this.#plan = plan;
    this.#fleet = fleet;
    this.#logPath = join(fleet.logs, `${plan.name}.log`);
    this.#warnings = new Warnings(plan.name, this.#logPath, fleet.told);
    rotate(this.#logPath);
    closeSync(openLog(this.#logPath));
    this.#readLog = followLog(this.#logPath, (text) => this.#hear(readLine(text)));
  }

  launch() {
    const { program, args, env, cwd, container, name } = this.#plan;
    if (this.#fleet.ending) return;
    this.#isUp = false;
    // A container of an earlier start may still have the name.
    if (container !== undefined) removeContainer(container);
    const out = openLog(this.#logPath);
    // The child leads a new process group, so Ctrl-C in the terminal reaches only the start, which
    // stops the members in order.
    const child = spawn(program, args, { env, cwd, stdio: ["ignore", out, out], detached: true });
    closeSync(out);
    if (child.pid !== undefined) this.#fleet.records.add(this.#plan, child.pid);
    this.#restartPatience();
    let hasEnded = false;
    const end = (/** @type {string} */ how, /** @type {number | null} */ code) => {
      if (hasEnded) return;
      hasEnded = true;
      clearTimeout(this.#patience);
      if (this.#fleet.ending) return;
      this.#fleet.records.remove(name);
      this.#readLog();
      this.#afterDeath(how, code).catch(this.#fleet.giveUp);
    };
    child.once("error", (error) => end(error.message, null));
    child.once("exit", (code, signal) => end(signal ?? `exit status ${code}`, code));
  }

  /** For a member whose log has no line which says that it is up. */
  setUp() {
    if (this.#wasEverUp && !this.#isUp) say(`${this.#plan.name} is back.`);
    this.#isUp = true;
    this.#wasEverUp = true;
    this.#deaths = 0;
    this.#tellFirstUp();
  }

  /** @param {LogLine} line */
  #hear(line) {
    const { readyMessage, diedMessage } = this.#plan;
    this.#lastWords = [...this.#lastWords, line].slice(-20);
    if (readyMessage !== undefined && line.message === readyMessage) {
      this.#saidReady = true;
      this.setUp();
    }
    if (line.isWarning && !this.#fleet.ending) this.#warnings.show(line);
    if (diedMessage !== undefined && line.message === diedMessage) this.#afterDeathWithin(line);
  }

  #restartPatience() {
    clearTimeout(this.#patience);
    this.#patience = setTimeout(() => this.setUp(), UP_AFTER_MS);
    this.#patience.unref();
  }

  /**
   * The process that does the member's work has died; the member itself restarts that process.
   *
   * @param {LogLine} line
   */
  #afterDeathWithin({ details }) {
    if (this.#fleet.ending) return;
    this.#isUp = false;
    this.#deaths += 1;
    this.#restartPatience();
    const { signal, code } = details;
    if (this.#deaths >= this.#maxDeaths()) {
      this.#giveUp(typeof signal === "string" ? signal : `exit status ${Number(code)}`);
    }
  }

  /**
   * @param {string} how
   * @param {number | null} code
   */
  async #afterDeath(how, code) {
    if (!this.#isUp) this.#deaths += 1;
    const isUnusable = code === EXIT_UNUSABLE && !this.#saidReady;
    if (this.#deaths >= this.#maxDeaths() || isUnusable) {
      this.#giveUp(how, isUnusable ? EXIT_UNUSABLE : undefined);
      return;
    }
    say(`${this.#plan.name} ended (${how}); starting it again.`);
    if (this.#deaths > 0) await pause(Math.min(FIRST_PAUSE_MS * 2 ** (this.#deaths - 1), LONGEST_PAUSE_MS));
    this.launch();
  }

  #maxDeaths() {
    return this.#wasEverUp ? MAX_DEATHS.beenUp : MAX_DEATHS.neverUp;
  }

  /**
   * @param {string} how
   * @param {number} [status] the exit status of the start
   */
  #giveUp(how, status) {
    const times = this.#deaths > 1 ? ` ${this.#deaths} times in a row` : "";
    const words = telling(this.#lastWords).map((line) => `\n  ${describe(line)}`);
    this.#fleet.giveUp(
      new Refusal(
        `${this.#plan.name} does not stay up (${how}${times}); its log is ${this.#logPath}. ` +
          `Its last words:${words.join("")}`,
        status,
      ),
    );
  }
}

/**
 * @param {import("./processes.mjs").Plan} plan
 * @param {Fleet} fleet
 * @returns {Pick<Member, "firstUp" | "setUp">}
 */
export function startMember(plan, fleet) {
  const member = new Member(plan, fleet);
  member.launch();
  return member;
}
