/**
 * Reads the settings of a process from its environment, once, at its start. An error names all
 * faults together.
 */
import type { Logger } from "pino";
import { z } from "zod";
import { EXIT_UNUSABLE } from "./exit.js";
import {
  holdsRedisUser,
  isForTls,
  isNatsForTls,
  natsUrlFault,
  redisUrlFault,
  withRedisUser,
  withTlsFiles,
} from "./broker-url.js";
import { MOST_BUCKETS } from "./buckets.js";
import { durabilities } from "./durability.js";
import { createLog } from "./log.js";
import { readSecretLines } from "./secret-file.js";
import { natsTls, readTls, redisTls, settingsOfFiles, tlsFilesOf } from "./tls.js";
import { traceSettings } from "./trace/settings.js";
import { describeUnknown, isStrict, unknownSettings } from "./unknown-settings.js";

/** A setting that is on or off. */
export function flagSetting(byDefault: "true" | "false") {
  return z
    .enum(["true", "false"])
    .default(byDefault)
    .transform((text) => text === "true");
}

const USUAL_REDIS = "redis://127.0.0.1:6379";

/** The settings of a connection to Redis. */
export const redisSettings = {
  BATON_REDIS_URL: z
    .string()
    .default(USUAL_REDIS)
    .superRefine(named(redisUrlFault))
    .describe(
      "The address of Redis 7.0 or newer, or Valkey: `redis://host:port`, the path of a Unix socket, " +
        "`redis+sentinel://host:port,host:port/name` or `redis+cluster://host:port,host:port`. `rediss` in place of " +
        "`redis` means TLS.",
    ),
  BATON_REDIS_USERNAME: z
    .string()
    .optional()
    .describe("The user of Redis whose password is in `BATON_REDIS_PASSWORD_FILE`. Unset: the user `default`."),
  BATON_REDIS_PASSWORD_FILE: z
    .string()
    .optional()
    .describe(
      "The path of the file whose first line is the password for Redis. `BATON_REDIS_URL` then has no user and no " +
        "password. Unset: the process connects with the user of the address, if any.",
    ),
  BATON_REDIS_CA_FILE: z
    .string()
    .optional()
    .describe(
      "The path of the file with the certificates of the authorities that Redis's certificate is signed by. Like " +
        "the next two, it needs an address that begins with `rediss`, and is read anew at each connect. Unset: the " +
        "system's authorities.",
    ),
  BATON_REDIS_CERT_FILE: z
    .string()
    .optional()
    .describe(
      "The path of the file with this process's certificate, for a Redis that asks for one. Needs " +
        "`BATON_REDIS_KEY_FILE`.",
    ),
  BATON_REDIS_KEY_FILE: z.string().optional().describe("The path of the file with the key of `BATON_REDIS_CERT_FILE`."),
  BATON_DURABILITY: z
    .enum(durabilities)
    .default("strict")
    .describe(
      "How much acknowledged work a failure of Redis may lose. `strict`: a power cut loses nothing. `fast`: a " +
        "power cut loses about a second. `replicated`: a failover loses nothing either. A process refuses a Redis " +
        "whose own settings promise less.",
    ),
};

/** The settings of both gateways and workers. */
export const sharedSettings = z.object({
  ...redisSettings,
  BATON_NATS_URL: z
    .string()
    .default("nats://127.0.0.1:4222")
    .superRefine(named(natsUrlFault))
    .describe(
      "The NATS servers, comma-separated: `nats://host:port`, or `tls://host:port` for TLS. A process that is given " +
        "`nats://` uses TLS if the server asks for it.",
    ),
  BATON_NATS_CREDS: z
    .string()
    .optional()
    .describe("The path of the credentials file for NATS. Unset: this process connects without credentials."),
  BATON_NATS_CA_FILE: z
    .string()
    .optional()
    .describe(
      "The path of the file with the certificates of the authorities that NATS's certificate is signed by. Like the " +
        "next two, it needs an address that begins with `tls`, and is read anew at each connect. Unset: the system's " +
        "authorities.",
    ),
  BATON_NATS_CERT_FILE: z
    .string()
    .optional()
    .describe(
      "The path of the file with this process's certificate, for a NATS that asks for one. Needs " +
        "`BATON_NATS_KEY_FILE`.",
    ),
  BATON_NATS_KEY_FILE: z.string().optional().describe("The path of the file with the key of `BATON_NATS_CERT_FILE`."),
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
    .describe(
      "The least severe lines to log: `debug`, `info`, `warn` or `error`, unless an operator has changed that for the " +
        "whole fleet (`POST /v2/logging`).",
    ),
  ...traceSettings,
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
  const { url, faults } = completeAddresses(given, "BATON_NATS_URL" in schema.shape);
  const secrets = readSecrets(Object.keys(schema.shape), given, faults);
  const parsed = schema.safeParse({ ...given, ...secrets, ...(url !== undefined && { BATON_REDIS_URL: url }) });
  const unknown = describeUnknown(unknownSettings(env));
  if (parsed.success && faults.length === 0 && (unknown === undefined || !isStrict(env))) return parsed.data;
  const issues = parsed.error?.issues ?? [];
  const wrong = issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new Error(`settings: ${[...wrong, ...faults, unknown].filter((one) => one !== undefined).join("; ")}`);
}

/**
 * Puts the user, the password and the files for TLS into the address of Redis, which all
 * connections take, and finds the faults of these settings and of those for NATS.
 * @param hasNats whether the process connects to NATS
 */
function completeAddresses(
  env: Env,
  hasNats: boolean,
): { readonly url: string | undefined; readonly faults: string[] } {
  const faults: string[] = [];
  const step = (complete: () => string | undefined): string | undefined => {
    try {
      return complete();
    } catch (error) {
      faults.push(error instanceof Error ? error.message : String(error));
      return undefined;
    }
  };
  const withUser = step(() => urlWithUser(env));
  const withFiles = step(() => urlWithTlsFiles(withUser ?? env["BATON_REDIS_URL"] ?? USUAL_REDIS, env));
  step(() => {
    if (hasNats) checkTlsOfNats(env);
    return undefined;
  });
  return { url: withFiles ?? withUser, faults };
}

/**
 * Reads the secrets of which the environment names files: a setting and the same name with `_FILE`.
 * @param names of the process's settings
 * @param faults gets what is wrong
 */
function readSecrets(names: readonly string[], env: Env, faults: string[]): Record<string, string> {
  const secrets: Record<string, string> = {};
  for (const name of names) {
    const file = env[`${name}_FILE`];
    if (file === undefined || !names.includes(`${name}_FILE`)) continue;
    try {
      if (env[name] !== undefined) throw new Error(`${name}_FILE: must not be set beside ${name}`);
      [secrets[name] = ""] = readSecretLines(`${name}_FILE`, file);
    } catch (error) {
      faults.push(error instanceof Error ? error.message : String(error));
    }
  }
  return secrets;
}

type Env = Readonly<Partial<Record<string, string>>>;

/** @throws Error for a fault of the settings */
function urlWithUser(env: Env): string | undefined {
  const { BATON_REDIS_URL: url = USUAL_REDIS, BATON_REDIS_USERNAME: name, BATON_REDIS_PASSWORD_FILE: file } = env;
  if (file === undefined) {
    if (name !== undefined) throw new Error("BATON_REDIS_USERNAME: needs BATON_REDIS_PASSWORD_FILE");
    return undefined;
  }
  if (holdsRedisUser(url)) {
    throw new Error("BATON_REDIS_URL: must not hold a user or a password beside BATON_REDIS_PASSWORD_FILE");
  }
  const [password = ""] = readSecretLines("BATON_REDIS_PASSWORD_FILE", file);
  return withRedisUser(url, name, password);
}

/** @throws Error for a fault of the settings or the files */
function urlWithTlsFiles(url: string, env: Env): string | undefined {
  const files = tlsFilesOf(redisTls, env);
  const [named] = settingsOfFiles(redisTls, files);
  if (named === undefined) return undefined;
  if (!isForTls(url)) throw new Error(`${named}: needs a BATON_REDIS_URL that begins with rediss`);
  readTls(files, redisTls);
  return withTlsFiles(url, files);
}

/** @throws Error for a fault of the settings or the files */
function checkTlsOfNats(env: Env): void {
  const files = tlsFilesOf(natsTls, env);
  const [named] = settingsOfFiles(natsTls, files);
  if (named === undefined) return;
  if (!isNatsForTls(env["BATON_NATS_URL"] ?? "")) throw new Error(`${named}: needs a BATON_NATS_URL with tls://`);
  readTls(files, natsTls);
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
