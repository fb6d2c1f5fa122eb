/** The level of this process's log, in Triton's form. */
import { InferenceError } from "#shared/errors.js";
import type { Caller } from "../caller.js";
import { needOperator } from "./operators.js";

/** The levels of `BATON_LOG_LEVEL`, from the fewest lines to the most. */
const levels = ["error", "warn", "info", "debug"] as const;

export interface ShownLog {
  readonly log_file: string;
  readonly log_info: boolean;
  readonly log_warning: boolean;
  readonly log_error: boolean;
  readonly log_verbose_level: number;
  readonly log_format: string;
}

/** The member that operators can change: with 0 there are no debug lines. */
const CHANGEABLE = "log_verbose_level";

/** A member is undefined if the client does not name it, and null if the client resets it. */
export type LogChange = {
  readonly [N in keyof ShownLog]?: ShownLog[N] | (N extends typeof CHANGEABLE ? null : never) | undefined;
};

export interface ProcessLogTerms {
  /** The log, whose level a change sets. */
  readonly log: { level: string };
  /** Whether a proxy's header says whose a request is. */
  readonly hasTenantHeader: boolean;
}

export class ProcessLog {
  readonly #terms: ProcessLogTerms;
  /** The level with which the process began. */
  readonly #usual: string;

  constructor(terms: ProcessLogTerms) {
    this.#terms = terms;
    this.#usual = terms.log.level;
  }

  show(): ShownLog {
    return shownAt(this.#terms.log.level);
  }

  /**
   * Takes members as `show` gives them, so that a client may send back all that it has read.
   * @returns the settings after the change
   * @throws InferenceError `forbidden`, or `unsupported` for a member that no client can change
   */
  change(caller: Caller, { log_verbose_level: verbose, ...others }: LogChange): ShownLog {
    const { log, hasTenantHeader } = this.#terms;
    needOperator(caller, hasTenantHeader);
    const shown = this.show();
    const other = Object.entries(others).find(
      ([name, value]) => value !== undefined && value !== shown[name as keyof ShownLog],
    );
    if (other !== undefined) {
      const [name] = other;
      throw new InferenceError("unsupported", `'${name}' cannot be changed here, but ${CHANGEABLE} can`);
    }
    if (verbose !== undefined) log.level = levelFor(verbose, this.#usual);
    return this.show();
  }
}

/** @param usual the level of the setting */
export function levelFor(verbose: number | null, usual: string): string {
  if (verbose === null) return usual;
  if (verbose > 0) return "debug";
  return usual === "debug" ? "info" : usual;
}

export function shownAt(level: string): ShownLog {
  const rank = levels.findIndex((one) => one === level);
  return {
    log_file: "",
    log_info: rank >= 2,
    log_warning: rank >= 1,
    log_error: true,
    log_verbose_level: rank >= 3 ? 1 : 0,
    log_format: "default",
  };
}
