/**
 * The secrets of `npm start`, made once in a folder that no other user can read. A start prints no
 * secret, and makes none a second time.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lastLines, runCommand } from "../setup/command.mjs";
import { needWritable, root } from "../setup/paths.mjs";
import { codeOf, Refusal } from "../setup/terminal.mjs";

/** Length of the pepper in bytes. */
const PEPPER_BYTES = 32;
const KEYS_MS = 30_000;

/** @typedef {{ BATON_AUTH_SECRET_FILE: string, BATON_OPERATOR_KEY_FILE: string }} Secrets */

/** @param {string} home */
function folderOf(home) {
  return join(home, "secrets");
}

/**
 * Makes the secrets that are not there yet, unless the environment names other files. An empty
 * variable names none.
 *
 * @param {string} home
 * @param {NodeJS.ProcessEnv} env
 * @returns {Secrets} settings of a gateway, and of the program `keys`
 * @throws {Refusal} if they cannot be written
 */
export function prepareSecrets(home, env) {
  const folder = folderOf(home);
  needWritable(folder);
  chmodSync(folder, 0o700);
  return {
    BATON_AUTH_SECRET_FILE: env["BATON_AUTH_SECRET_FILE"] || makePepper(join(folder, "auth.pepper")),
    BATON_OPERATOR_KEY_FILE: env["BATON_OPERATOR_KEY_FILE"] || join(folder, "operator.key"),
  };
}

/** @param {string} file */
function makePepper(file) {
  if (existsSync(file)) return file;
  // Whole or not at all, also if this process dies meanwhile.
  const whole = `${file}.${process.pid}`;
  try {
    writeFileSync(whole, `${randomBytes(PEPPER_BYTES).toString("base64")}\n`, { mode: 0o600 });
    linkSync(whole, file);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw new Refusal(`Baton cannot make ${file} (${codeOf(error)}).`);
  } finally {
    rmSync(whole, { force: true });
  }
  return file;
}

/**
 * Notes the Redis of this start for `npm run keys` in another terminal: the start may have chosen
 * another port than the usual one. A URL may have a password, so its file lies among the secrets.
 *
 * @param {string} home
 * @param {string} url
 */
export function noteRedisUrl(home, url) {
  writeFileSync(join(folderOf(home), "redis.url"), `${url}\n`, { mode: 0o600 });
}

/**
 * The Redis of the latest start; undefined if there was none.
 *
 * @param {string} home
 */
export function lastRedisUrl(home) {
  try {
    return readFileSync(join(folderOf(home), "redis.url"), "utf8").trim();
  } catch {
    return undefined;
  }
}

/**
 * The operator's key. The program makes a key only if Redis says that there is no such key; any
 * other failure ends the start.
 *
 * @param {Secrets} secrets
 * @param {string} redisUrl
 * @returns {Promise<{ file: string, key: string }>}
 * @throws {Refusal} if there is no good key
 */
export async function prepareOperatorKey(secrets, redisUrl) {
  const env = { ...process.env, ...secrets, BATON_REDIS_URL: redisUrl };
  const program = join(root, "dist/gateway/auth/program/main.js");
  const { code, output } = await runCommand(process.execPath, [program, "first"], { env, timeoutMs: KEYS_MS });
  const key = /^bt_\S+$/m.exec(output)?.[0];
  if (code !== 0 || key === undefined) throw new Refusal(`There is no operator's key:\n${lastLines(output, 5)}`);
  return { file: secrets.BATON_OPERATOR_KEY_FILE, key };
}
