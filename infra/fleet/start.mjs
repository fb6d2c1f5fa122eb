/**
 * `npm start`: sets up missing parts, starts the fleet in order, prints commands to type, and stops
 * the fleet in order.
 */
import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { takeLock } from "../setup/lock.mjs";
import { homeFolder, needWritable, root } from "../setup/paths.mjs";
import { prepare } from "../setup/prepare.mjs";
import { Refusal, say, step } from "../setup/terminal.mjs";
import { banner } from "./banner.mjs";
import { bringUp } from "./bring-up.mjs";
import { clearLeftovers, keepGuard } from "./orphans.mjs";
import { needHttpPort } from "./ports.mjs";
import { living, Records } from "./records.mjs";
import { listModels, misspeltSettings, startSettings } from "./settings.mjs";
import { watchStopRequests } from "./stop-request.mjs";
import { killAll, stopInOrder } from "./stop.mjs";

export async function start() {
  const handlers = watchStopRequests();
  const envFile = join(root, ".env"); // Docker Compose reads it, too
  if (existsSync(envFile)) process.loadEnvFile(envFile);
  const env = process.env;
  const settings = startSettings(env);
  const home = homeFolder(env);
  const records = new Records(join(home, "run"));

  // Refusals come first, before the minutes of the set-up.
  needWritable(home);
  const holder = takeLock(join(home, "start.lock"));
  if (holder !== undefined)
    throw new Refusal(
      `Baton already runs in this folder (process ${holder.pid}): press Ctrl-C there, or \`kill ${holder.pid}\`.`,
    );
  await clearLeftovers(home, records.folder);
  listModels(settings.repository, env["BATON_MODELS"]);
  await needHttpPort(settings);
  const { logs, brokers } = await prepare(env);
  const misspelt = await misspeltSettings(env);
  if (misspelt !== undefined) say(misspelt);
  // The set-up makes a model, too.
  const models = listModels(settings.repository, env["BATON_MODELS"]);

  /** @type {import("./member.mjs").Fleet} */
  const fleet = { records, logs, ending: false, told: new Set([misspelt ?? ""]), giveUp: () => {} };
  /** @type {Promise<void>} resolves at a request to stop, rejects if a member keeps dying */
  const ended = new Promise((resolve, reject) => {
    handlers.stop = resolve;
    fleet.giveUp = reject;
  });
  ended.catch(() => {}); // until the `await` below, a rejection must not end the process
  handlers.atOnce = () => {
    killAll(records.folder, living(records.held));
    say("Killed.");
    process.exit(130);
  };
  const dismissGuard = keepGuard(records);
  try {
    const up = await Promise.race([bringUp({ fleet, settings, brokers, home, models }), ended]);
    if (up !== undefined) {
      say(banner({ ...up, models, workers: settings.workers, logs: relative(process.cwd(), logs) || logs }));
      await ended;
    }
  } finally {
    fleet.ending = true;
    const running = living(records.held);
    if (running.length > 0) say("Stopping: what was accepted is finished first (Ctrl-C again kills)");
    await step("Stopping", () =>
      stopInOrder(records.folder, running, {
        onKilled: ({ name, graceMs }) => say(`${name} did not stop within ${graceMs / 1000} s and was killed.`),
      }),
    );
    dismissGuard();
  }
  say(`Stopped. ${existsSync(home) ? "Data is kept for the next start." : `${home} was removed meanwhile.`}`);
  process.exit(0);
}
