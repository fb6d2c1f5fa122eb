/**
 * The secrets of `npm start`, made once in a folder that no other user can read. A start prints no
 * secret, and makes none a second time.
 */
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lastLines, runCommand } from "../setup/command.mjs";
import { needWritable, root } from "../setup/paths.mjs";
import { Refusal } from "../setup/terminal.mjs";

/** The program `keys`. */
const KEYS = join(root, "dist/gateway/auth/program/main.js");
const KEYS_MS = 30_000;

/**
 * @typedef {object} Secrets
 * @property {string} BATON_AUTH_SECRET_FILE
 * @property {string} BATON_OPERATOR_KEY_FILE
 * @property {string} BATON_METRICS_TOKEN_FILE
 */
/**
 * @typedef {object} RedisUsers the users of the private Redis
 * @property {string} file for the server
 * @property {string} password of the operator
 * @property {import("./processes.mjs").RoleEnv} env settings of each process
 */

/** @param {string} home */
function folderOf(home) {
  return join(home, "secrets");
}

/**
 * Makes the secrets that are not there yet, unless the environment names other files. An empty
 * variable names none. Needs a build.
 *
 * @param {string} home
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<Secrets>} settings of the processes, and of the program `keys`
 * @throws {Refusal} if they cannot be written
 */
export async function prepareSecrets(home, env) {
  const folder = folderOf(home);
  needWritable(folder);
  chmodSync(folder, 0o700);
  const pepper = env["BATON_AUTH_SECRET_FILE"] || join(folder, "auth.pepper");
  if (!existsSync(pepper)) await runKeys(["pepper", pepper], "The secret of API keys could not be made");
  const token = env["BATON_METRICS_TOKEN_FILE"] || join(folder, "metrics.token");
  if (!existsSync(token)) await runKeys(["token", token], "The token of metrics could not be made");
  return {
    BATON_METRICS_TOKEN_FILE: token,
    BATON_AUTH_SECRET_FILE: pepper,
    BATON_OPERATOR_KEY_FILE: env["BATON_OPERATOR_KEY_FILE"] || join(folder, "operator.key"),
  };
}

/**
 * Makes the users of the private Redis: their passwords once, and the file for the server each
 * time, because the next version may need other commands.
 *
 * @param {string} home
 * @returns {Promise<RedisUsers>}
 * @throws {Refusal} if they cannot be written
 */
export async function prepareRedisUsers(home) {
  const folder = folderOf(home);
  const file = join(folder, "users.acl");
  const passwordFile = (/** @type {string} */ role) => join(folder, `redis-${role}.pass`);
  const args = ["acl", "--passwords", passwordFile("*"), "--file", file];
  await runKeys(args, "The users of Redis could not be made");
  const envOf = (/** @type {string} */ role) => ({
    BATON_REDIS_USERNAME: role,
    BATON_REDIS_PASSWORD_FILE: passwordFile(role),
  });
  const [password = ""] = readFileSync(passwordFile("operator"), "utf8").split("\n");
  return { file, password, env: { gateway: envOf("gateway"), jobs: envOf("jobs"), worker: envOf("worker") } };
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
  const output = await runKeys(["first"], "There is no operator's key", env);
  const key = /^bt_\S+$/m.exec(output)?.[0];
  if (key === undefined) throw new Refusal(`There is no operator's key:\n${lastLines(output, 5)}`);
  return { file: secrets.BATON_OPERATOR_KEY_FILE, key };
}

/**
 * @param {readonly string[]} args
 * @param {string} problem what it means if the program fails
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Promise<string>} the end of its output
 * @throws {Refusal} if the program fails
 */
async function runKeys(args, problem, env = process.env) {
  const { code, output } = await runCommand(process.execPath, [KEYS, ...args], { env, timeoutMs: KEYS_MS });
  if (code !== 0) throw new Refusal(`${problem}:\n${lastLines(output, 5)}`);
  return output;
}
