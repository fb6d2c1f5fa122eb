/** The log of a process: a JSON line for each event, on standard output. */
import { pino, type Logger } from "pino";

/** The levels of `BATON_LOG_LEVEL`, from the fewest lines to the most. */
export const logLevels = ["error", "warn", "info", "debug"] as const;

export function createLog(level: string, name: string): Logger {
  return pino({ level, base: { name, pid: process.pid } });
}

interface Leveled {
  level: string;
}

/**
 * How much a process logs: as its own setting says, unless operators have changed that for the
 * whole fleet (queue/log-setting.ts).
 */
export class LogLevel {
  readonly #log: Leveled & Pick<Logger, "info">;
  readonly #children: Leveled[] = [];
  /** The level with which the process began. */
  readonly #usual: string;
  /** The verbosity that the logs have now. */
  #verbosity: number | undefined;

  constructor(log: Leveled & Pick<Logger, "info">) {
    this.#log = log;
    this.#usual = log.level;
  }

  get now(): string {
    return levelFor(this.#verbosity, this.#usual);
  }

  /** Sets the level of a child, too: pino's children keep the level that their parent had. */
  govern<Child extends Leveled>(child: Child): Child {
    child.level = this.now;
    this.#children.push(child);
    return child;
  }

  /** @param verbosity of the fleet; undefined if operators have not changed it */
  follow(verbosity: number | undefined): void {
    if (verbosity === this.#verbosity) return;
    this.#verbosity = verbosity;
    const { now: level } = this;
    for (const log of [this.#log, ...this.#children]) log.level = level;
    this.#log.info({ logs: level }, "the level of the log is changed");
  }
}

/** @param usual the level of the setting */
export function levelFor(verbosity: number | undefined, usual: string): string {
  if (verbosity === undefined) return usual;
  if (verbosity > 0) return "debug";
  return usual === "debug" ? "info" : usual;
}
