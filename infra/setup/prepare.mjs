/**
 * The set-up of `npm start` and the test commands, so that each works as the first command in a
 * fresh clone.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { findBrokers } from "./brokers.mjs";
import { makeTutorialModel } from "../tutorial/make.mjs";
import { build } from "./build.mjs";
import { installDependencies } from "./dependencies.mjs";
import { dropLock, takeLock } from "./lock.mjs";
import { homeFolder, needWritable, root } from "./paths.mjs";
import { Refusal, step } from "./terminal.mjs";

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {{ programsOnly?: boolean }} [options] see `findBrokers`
 */
export async function prepare(env, options) {
  if (!existsSync(join(root, "package-lock.json"))) throw new Refusal(`${root} is not a complete checkout of Baton.`);
  const home = homeFolder(env);
  needWritable(home);
  const logs = join(home, "logs");
  needWritable(logs);
  const brokers = await findBrokers(env, logs, options);
  await prepareBuild(logs);
  return { home, logs, brokers };
}

/**
 * Installs the dependencies and builds, if either is not current.
 *
 * @param {string} logs a folder
 */
export async function prepareBuild(logs) {
  // Two set-ups in one checkout would pull node_modules from under each other.
  const lock = join(root, ".baton/setup.lock");
  needWritable(join(root, ".baton"), "the checkout has to be writable for dependencies and the build.");
  let holder = takeLock(lock);
  if (holder !== undefined) {
    await step(`Waiting for another set-up in this folder (process ${holder.pid})`, async () => {
      while ((holder = takeLock(lock)) !== undefined) await pause(200);
    });
  }
  await installDependencies(logs);
  await build(logs);
  makeTutorialModel(join(root, "infra/models/my_lstm_model"));
  dropLock(lock);
}
