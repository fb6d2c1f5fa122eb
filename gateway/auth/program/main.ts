/**
 * `npm run keys -- COMMAND`: makes, lists, rotates and revokes API keys, straight in Redis.
 * Standard output has the key alone, or a document with `--json`; all else goes to standard error,
 * also the lines of the audit. `acl` makes the users of Redis instead.
 */
import { dirname, join } from "node:path";
import { pino } from "pino";
import { z } from "zod";
import { InferenceError } from "#shared/errors.js";
import { exitCodeOf, EXIT_UNUSABLE, UnusableError } from "#shared/exit.js";
import { requireKeys } from "#shared/queue/deployment.js";
import { makeSecret } from "#shared/secret-file.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { parseSettings, redisSettings, sharedSettings } from "#shared/settings.js";
import { Audit, type AuditEvent } from "../audit.js";
import { readCommand, usage, UsageError, type Command } from "./command.js";
import { firstKey } from "./first-key.js";
import { writeRedisUsers } from "./redis-users.js";
import { Keys, makeKey, type MadeKey } from "../keys.js";
import { addToKeysFile } from "../keys-file.js";
import { keyView, type KeyView } from "../key-view.js";
import { readPeppers } from "../pepper.js";
import type { KeyRecord } from "../owner/records.js";
import { authSettings } from "../settings.js";

const settings = z.object({
  ...redisSettings,
  BATON_LOG_LEVEL: sharedSettings.shape.BATON_LOG_LEVEL,
  BATON_AUTH_SECRET_FILE: authSettings.BATON_AUTH_SECRET_FILE,
  BATON_ADMIN_API: authSettings.BATON_ADMIN_API,
  BATON_OPERATOR_KEY_FILE: z
    .string()
    .optional()
    .describe(
      "The file in which `npm run keys -- first` keeps the operator's key. Unset: `operator.key` beside the pepper.",
    ),
});
/** How long to wait for Redis, in ms. */
const PATIENCE_MS = 10_000;
/** This program in the audit. */
const ACTOR = "keys";

async function run(command: Command): Promise<void> {
  if (command.verb === "pepper" || command.verb === "token") return makeSecret(command.file);
  if (command.verb === "acl") {
    const asked = settingsOf(process.env);
    const { passwords = join(dirname(pepperFileOf(asked)), "redis-*.pass"), file } = command;
    return writeRedisUsers(passwords, file, asked.BATON_ADMIN_API === "on");
  }
  const config = settingsOf(process.env);
  // Standard output is for keys.
  const log = pino({ level: config.BATON_LOG_LEVEL, base: { name: "keys" } }, pino.destination(2));
  const file = pepperFileOf(config);
  const peppers = readPeppers(file);
  const [pepper] = peppers;
  if (pepper === undefined) throw new TypeError("a file of peppers has one");
  if (command.verb === "create" && command.file !== undefined) return createInFile(command, command.file, pepper);
  const redis = connectRedis({ url: config.BATON_REDIS_URL, name: "keys", durability: config.BATON_DURABILITY, log });
  const audit = newAudit();
  try {
    await whenReady(redis, AbortSignal.timeout(PATIENCE_MS)).catch((cause: unknown) => {
      throw new UnusableError(noAnswer(config.BATON_REDIS_URL), { cause });
    });
    const keys = new Keys({ redis, pepper });
    if (command.verb === "first") {
      await printFirst(config.BATON_OPERATOR_KEY_FILE ?? join(dirname(file), "operator.key"), keys, peppers, audit);
    } else await act(command, redis, keys, audit);
  } finally {
    audit.flush();
    redis.disconnect();
  }
}

function pepperFileOf({ BATON_AUTH_SECRET_FILE: file }: z.infer<typeof settings>): string {
  if (file !== undefined) return file;
  throw new UnusableError("BATON_AUTH_SECRET_FILE names the file with the pepper; it is not set.");
}

/** `npm start` runs its Redis on this machine alone. */
function noAnswer(redisUrl: string): string {
  const hint = /^redis:\/\/(?:[^@/]*@)?127\.0\.0\.1:/.test(redisUrl)
    ? " If `npm start` runs Redis, start the fleet first (BATON_AUTH=keys npm start)."
    : "";
  return `Redis does not answer within ${PATIENCE_MS / 1_000} s (BATON_REDIS_URL).${hint}`;
}

function newAudit(): Audit {
  return new Audit(ACTOR, (lines) => process.stderr.write(lines));
}

/** Makes a key in a file of keys, which needs no Redis. */
function createInFile(
  { tenant, name, scopes, models, limits, livesMs, json }: Extract<Command, { verb: "create" }>,
  file: string,
  pepper: Buffer,
): void {
  const now = Date.now();
  const expiresAt = livesMs === undefined ? null : now + livesMs;
  const made = makeKey({ tenant, name, scopes, models, limits, createdAt: now, expiresAt }, pepper);
  addToKeysFile(file, made.record);
  const audit = newAudit();
  audit.note("key_created", { key_id: made.record.id, tenant, actor: ACTOR });
  audit.flush();
  printMade(made, now, json);
}

async function printFirst(file: string, keys: Keys, peppers: readonly Buffer[], audit: Audit): Promise<void> {
  const { record, text, isNew } = await firstKey(file, keys, peppers);
  if (isNew) audit.note("key_created", { key_id: record.id, tenant: record.tenant, actor: ACTOR });
  process.stdout.write(`${text}\n`);
  process.stderr.write(`the operator's key, which may do everything; it is in ${file}\n`);
}

/** @throws UnusableError */
function settingsOf(env: NodeJS.ProcessEnv): z.infer<typeof settings> {
  try {
    return parseSettings(settings, env);
  } catch (error) {
    throw new UnusableError(error instanceof Error ? error.message : String(error));
  }
}

async function act(
  command: Exclude<Command, { verb: "pepper" | "token" | "first" | "acl" }>,
  redis: RedisClient,
  keys: Keys,
  audit: Audit,
): Promise<void> {
  const now = await keys.now();
  const note = (event: AuditEvent, { id, tenant }: Pick<KeyRecord, "id" | "tenant">, reason?: string): void =>
    audit.note(event, { key_id: id, tenant, reason, actor: ACTOR });
  switch (command.verb) {
    case "create": {
      const { tenant, name, scopes, models, limits, livesMs, json } = command;
      const made = await keys.make({ tenant, name, scopes, models, limits, livesMs, createdBy: undefined });
      note("key_created", made.record);
      return printMade(made, now, json);
    }
    case "rotate": {
      const made = await keys.rotate(command.id, command.overlapMs, undefined);
      note("key_rotated", { ...made.record, id: command.id }, `replaced by ${made.record.id}`);
      return printMade(made, now, command.json);
    }
    case "require":
      await requireKeys(redis, command.isRequired);
      audit.note("auth_required", { reason: command.isRequired ? "on" : "off", actor: ACTOR });
      process.stderr.write(`gateways without keys ${command.isRequired ? "do not start" : "may start"}\n`);
      return;
    case "show":
      return print((await keys.views([await keys.find(command.id)], now))[0]);
    case "revoke": {
      const revoked = await keys.revoke(command.id);
      note("key_revoked", revoked);
      return print((await keys.views([revoked], now))[0]);
    }
    case "list": {
      const views = await keys.views(await keys.list(command.tenant), now);
      if (command.json) return print({ object: "list", data: views });
      for (const view of views) process.stdout.write(`${lineOf(view)}\n`);
    }
  }
}

function printMade({ record, text }: MadeKey, now: number, json: boolean): void {
  const view = keyView(record, now);
  if (json) return print({ ...view, key: text });
  process.stdout.write(`${text}\n`);
  process.stderr.write(`key ${view.id} of ${view.tenant}, with ${view.scopes.join(", ")}; nobody can read it again\n`);
}

function lineOf({ id, tenant, name, state, scopes, last4 }: KeyView): string {
  return [id, tenant, state, `…${last4 ?? "????"}`, scopes.join(","), name].join("  ").trimEnd();
}

function print(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}

try {
  await run(readCommand(process.argv.slice(2)));
} catch (error) {
  if (error instanceof UsageError) {
    process.stderr.write(`${error.message}\n\n${usage}\n`);
    process.exit(EXIT_UNUSABLE);
  }
  const isTold = error instanceof InferenceError || error instanceof UnusableError;
  process.stderr.write(`${isTold ? error.message : String(error)}\n`);
  process.exit(exitCodeOf(error));
}
