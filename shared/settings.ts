/**
 * Reads the settings of a process from its environment, once, at its start. An error names all
 * faults together.
 */
import type { Logger } from "pino";
import { z } from "zod";
import { EXIT_UNUSABLE } from "./exit.js";
import { natsUrlFault, redisUrlFault } from "./broker-url.js";
import { MOST_BUCKETS } from "./buckets.js";
import { durabilities } from "./durability.js";
import { createLog } from "./log.js";
import { describeUnknown, isStrict, unknownSettings } from "./unknown-settings.js";

/** A setting that is on or off. */
export function flagSetting(byDefault: "true" | "false") {
  return z
    .enum(["true", "false"])
    .default(byDefault)
    .transform((text) => text === "true");
}

/** The settings of both gateways and workers. */
export const sharedSettings = z.object({
  BATON_REDIS_URL: z
    .string()
    .default("redis://127.0.0.1:6379")
    .superRefine(named(redisUrlFault))
    .describe(
      "The address of Redis 7.0 or newer, or Valkey: `redis://host:port`, the path of a Unix socket, " +
        "`redis+sentinel://host:port,host:port/name` or `redis+cluster://host:port,host:port`. `rediss` in place of " +
        "`redis` means TLS.",
    ),
  BATON_DURABILITY: z
    .enum(durabilities)
    .default("strict")
    .describe(
      "How much acknowledged work a failure of Redis may lose. `strict`: a power cut loses nothing. `fast`: a " +
        "power cut loses about a second. `replicated`: a failover loses nothing either. A process refuses a Redis " +
        "whose own settings promise less.",
    ),
  BATON_NATS_URL: z
    .string()
    .default("nats://127.0.0.1:4222")
    .superRefine(named(natsUrlFault))
    .describe("The NATS servers, comma-separated: `nats://host:port`."),
  BATON_NATS_CREDS: z
    .string()
    .optional()
    .describe("The path of the credentials file for NATS. Unset: this process connects without credentials."),
  BATON_CAPTURE_TTL_MS: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .refine((ms) => ms === 0 || ms >= 10_000, "must be 0 or at least 10000")
    .describe(
      "How long, in ms, JetStream keeps the records of streams for readers that come late. 0: JetStream keeps " +
        "none. Gateways, jobs processes and workers need the same value.",
    ),
  BATON_LEASE_MS: z.coerce
    .number()
    .int()
    .min(100)
    .max(60_000)
    .default(1_000)
    .describe("How long, in ms, a worker may be silent. After that other workers take over its steps."),
  BATON_BUCKETS: z.coerce
    .number()
    .int()
    .min(1)
    .max(MOST_BUCKETS)
    .optional()
    .describe(
      "The number of parts of the queue, each in one slot of a Redis Cluster. Unset: the number with which the " +
        "deployment began, at first 16 in a Cluster and 1 elsewhere. A process with another number does not start.",
    ),
  BATON_MAX_STATE_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(16_777_216)
    .describe(
      "The most bytes of a sequence's checkpoint. A step with a larger state fails (`state_too_large`), and Baton " +
        "refuses a larger import.",
    ),
  BATON_HIBERNATE_DIR: z
    .string()
    .optional()
    .transform((path) => (path === "" ? undefined : path))
    .describe(
      "A folder that all workers and gateways share, for the states of sequences that have been idle for long. " +
        "Unset: all states stay in Redis.",
    ),
  BATON_SHORT_SCRIPTS: flagSetting("true").describe(
    "`true`: steps that begin and end as usual take the short ways of scripts. `false`: all steps take the ways " +
      "for all cases, with the same answers, which cost Redis more. The setting is for the search for faults.",
  ),
  BATON_STRICT_SETTINGS: z
    .enum(["true", "false"])
    .default("false")
    .describe(
      "`true`: a process does not start (exit status 78) if the environment has a variable `BATON_…` that no " +
        "process of Baton reads. `false`: the process names such variables in one line of its log.",
    ),
  BATON_LOG_LEVEL: z
    .enum(["debug", "info", "warn", "error"])
    .default("info")
    .describe("The least severe lines to log: `debug`, `info`, `warn` or `error`."),
});

/**
 * @param fault describes the fault of a value, as the end of a sentence that begins with the
 *   setting's name
 */
function named(fault: (value: string) => string | undefined) {
  return (value: string, context: z.RefinementCtx): void => {
    const message = fault(value);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  };
}

/**
 * Parses the environment. An empty variable counts as absent. A misspelt variable is an error if
 * the settings are strict. If there are other errors, the message always names misspelt variables,
 * because they may be the cause.
 * @throws Error that names every wrong variable
 */
export function parseSettings<Schema extends z.ZodObject>(schema: Schema, env: NodeJS.ProcessEnv): z.infer<Schema> {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const parsed = schema.safeParse(given);
  const unknown = describeUnknown(unknownSettings(env));
  if (parsed.success && (unknown === undefined || !isStrict(env))) return parsed.data;
  const issues = parsed.error?.issues ?? [];
  const wrong = issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new Error(`settings: ${[...wrong, ...(unknown === undefined ? [] : [unknown])].join("; ")}`);
}

/**
 * Reads the settings, opens the log, and logs misspelt variables. For wrong settings, writes to
 * standard error and ends the process with EXIT_UNUSABLE.
 * @param name the process's name in the log
 */
export function settingsOrExit<Settings extends { readonly BATON_LOG_LEVEL: string }>(
  name: string,
  read: (env: NodeJS.ProcessEnv) => Settings,
): { config: Settings; log: Logger } {
  try {
    const config = read(process.env);
    const log = createLog(config.BATON_LOG_LEVEL, name);
    const unknown = describeUnknown(unknownSettings(process.env));
    if (unknown !== undefined) log.warn(unknown);
    return { config, log };
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(EXIT_UNUSABLE);
  }
}
