/**
 * `npm run keys -- COMMAND`: runs the program `keys` with the Redis and the pepper of `npm start`,
 * unless the environment or the file .env names others. Builds first, but never beside a running
 * fleet, whose processes load files of the build late. Standard output is for keys.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { lastRedisUrl, prepareSecrets } from "./fleet/secrets.mjs";
import { LOCAL } from "./fleet/ports.mjs";
import { startSettings } from "./fleet/settings.mjs";
import { dropLock, takeLock } from "./setup/lock.mjs";
import { homeFolder, needWritable, root } from "./setup/paths.mjs";
import { prepareBuild } from "./setup/prepare.mjs";
import { Refusal, useStandardError } from "./setup/terminal.mjs";

/** @returns {Promise<number>} the exit status */
async function run() {
  useStandardError();
  const envFile = join(root, ".env");
  if (existsSync(envFile)) process.loadEnvFile(envFile);
  const home = homeFolder(process.env);
  needWritable(home);
  const lock = join(home, "start.lock");
  const isRunning = takeLock(lock) !== undefined;
  dropLock(lock);
  if (!isRunning) await prepareBuild(join(home, "logs"));
  const secrets = await prepareSecrets(home, process.env);
  const env = {
    BATON_REDIS_URL: lastRedisUrl(home) ?? `redis://${LOCAL}:${startSettings(process.env).redis.port}`,
    ...Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== "")),
    ...secrets,
  };
  const program = join(root, "dist/gateway/auth/program/main.js");
  const args = [program, ...process.argv.slice(2)];
  return spawnSync(process.execPath, args, { stdio: "inherit", env }).status ?? 1;
}

try {
  process.exitCode = await run();
} catch (error) {
  // A refusal names the remedy; a stack trace is only for a mistake in this code.
  console.error(error instanceof Refusal ? error.message : error);
  process.exitCode = error instanceof Refusal ? error.status : 1;
}
