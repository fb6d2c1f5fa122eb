/** The warnings of a member that the terminal shows. The member's log has all warnings. */
import { say } from "../setup/terminal.mjs";
import { describe } from "./log.mjs";

/** Most different warnings that the terminal shows in a minute. */
const MAX_WARNINGS = 10;

export class Warnings {
  #member;
  #logPath;
  #told;
  /** The warnings that the terminal has shown in the current minute. */
  #shown = new Set();
  #minute = 0;

  /**
   * @param {string} member
   * @param {string} logPath
   * @param {Set<string>} told as in `Fleet`, shared by all members
   */
  constructor(member, logPath, told) {
    this.#member = member;
    this.#logPath = logPath;
    this.#told = told;
  }

  /** @param {import("./log.mjs").LogLine} line */
  show(line) {
    const minute = Math.floor(Date.now() / 60_000);
    if (this.#minute !== minute) this.#shown.clear();
    this.#minute = minute;
    const { model, warning } = line.details;
    // A configuration may cause a dozen warnings, and each worker that loads it repeats all.
    const isOfConfig = typeof warning === "string" && typeof model === "string";
    const text = isOfConfig
      ? `model ${model} is served, but its configuration is not taken as it is written: see ${this.#logPath}, or /v2/fleet`
      : describe(line);
    const fact = isOfConfig ? `the configuration of ${model}` : line.message;
    if (this.#told.has(fact) || this.#shown.has(text) || this.#shown.size >= MAX_WARNINGS) return;
    this.#shown.add(text);
    if (isOfConfig) this.#told.add(fact);
    say(`${this.#member}: ${text}`);
    if (this.#shown.size === MAX_WARNINGS) {
      say(`${this.#member}: more of this minute's warnings are in ${this.#logPath}`);
    }
  }
}
