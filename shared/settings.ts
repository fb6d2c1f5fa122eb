/** Parses a process's environment by its schema, once, at start; what is wrong is named, all at once. */
import { z } from "zod";
import { EXIT_UNUSABLE } from "./exit.js";

export const sharedSettings = z.object({
  BATON_REDIS_URL: z.string().default("redis://127.0.0.1:6379").describe("Redis 7.0 or newer, or Valkey"),
  BATON_NATS_URL: z.string().default("nats://127.0.0.1:4222").describe("NATS servers, comma-separated"),
  BATON_LEASE_MS: z.coerce
    .number()
    .int()
    .min(100)
    .max(60_000)
    .default(1_000)
    .describe("how long a worker may be silent before others take its steps"),
  BATON_SHARDS: z.coerce.number().int().min(1).max(1_024).default(1).describe("queues per model; the same everywhere"),
  BATON_LOG_LEVEL: z.enum(["debug", "info", "warn", "error"]).default("info").describe("least severe log line written"),
});

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
