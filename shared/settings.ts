/** Parses a process's environment by its schema, once, at start; what is wrong is named, all at once. */
import { z } from "zod";
import { EXIT_UNUSABLE } from "./exit.js";
import { natsUrlFault, redisUrlFault } from "./broker-url.js";

export const sharedSettings = z.object({
  BATON_REDIS_URL: z
    .string()
    .default("redis://127.0.0.1:6379")
    .superRefine(named(redisUrlFault))
    .describe("Redis 7.0 or newer, or Valkey: `redis://`, `rediss://` for TLS, or the path of a Unix socket"),
  BATON_NATS_URL: z
    .string()
    .default("nats://127.0.0.1:4222")
    .superRefine(named(natsUrlFault))
    .describe("NATS servers, comma-separated: `nats://host:port`"),
  BATON_LEASE_MS: z.coerce
    .number()
    .int()
    .min(100)
    .max(60_000)
    .default(1_000)
    .describe("how long a worker may be silent before others take its steps"),
  BATON_SHARDS: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_024)
    .default(1)
    .describe("queues per model; the same everywhere, and 1 where generators are served"),
  BATON_LOG_LEVEL: z.enum(["debug", "info", "warn", "error"]).default("info").describe("least severe log line written"),
});

/** @param fault what is wrong with a value, in words that begin after the setting's name. */
function named(fault: (value: string) => string | undefined) {
  return (value: string, context: z.RefinementCtx): void => {
    const message = fault(value);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  };
}

/** @throws Error naming every variable that is wrong. */
export function parseSettings<Schema extends z.ZodObject>(schema: Schema, env: NodeJS.ProcessEnv): z.infer<Schema> {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const wrong = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new Error(`settings: ${wrong.join("; ")}`);
}

/** What is wrong is said on standard error, to whoever set it, and ends the process. */
export function settingsOrExit<Settings>(read: (env: NodeJS.ProcessEnv) => Settings): Settings {
  try {
    return read(process.env);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(EXIT_UNUSABLE);
  }
}
