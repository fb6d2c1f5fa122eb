/**
 * The level of the log, in Triton's form. A change holds for the whole deployment: Redis keeps the
 * change, and every process takes it over.
 */
import { InferenceError } from "#shared/errors.js";
import { logLevels, type LogLevel } from "#shared/log.js";
import { changeVerbosity } from "#shared/queue/log-setting.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { changeInRedis } from "../../admission/ask-redis.js";
import type { Caller } from "../caller.js";
import { needOperator } from "./operators.js";

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

export interface LogServiceTerms {
  readonly redis: RedisClient;
  readonly level: LogLevel;
  /** Whether a proxy's header says whose a request is. */
  readonly hasTenantHeader: boolean;
}

export class LogService {
  readonly #terms: LogServiceTerms;

  constructor(terms: LogServiceTerms) {
    this.#terms = terms;
  }

  /** @returns the settings of this process, which may begin with another level than others */
  show(): ShownLog {
    return shownAt(this.#terms.level.now);
  }

  /**
   * Takes members as `show` gives them, so that a client may send back all that it has read.
   * @returns the settings after the change
   * @throws InferenceError `forbidden`, or `unsupported` for a member that no client can change
   */
  async change(caller: Caller, { log_verbose_level: verbose, ...others }: LogChange): Promise<ShownLog> {
    const { redis, level, hasTenantHeader } = this.#terms;
    needOperator(caller, hasTenantHeader);
    const shown = this.show();
    const other = Object.entries(others).find(
      ([name, value]) => value !== undefined && value !== shown[name as keyof ShownLog],
    );
    if (other !== undefined) {
      const [name] = other;
      throw new InferenceError("unsupported", `'${name}' cannot be changed here, but ${CHANGEABLE} can`);
    }
    if (verbose !== undefined) {
      const verbosity = verbose ?? undefined;
      await changeInRedis(() => changeVerbosity(redis, verbosity));
      level.follow(verbosity);
    }
    return this.show();
  }
}

export function shownAt(level: string): ShownLog {
  const rank = logLevels.findIndex((one) => one === level);
  return {
    log_file: "",
    log_info: rank >= 2,
    log_warning: rank >= 1,
    log_error: true,
    log_verbose_level: rank >= 3 ? 1 : 0,
    log_format: "default",
  };
}
