/** `npm start`: sets up what is missing, starts everything in order, says what to type, and takes all of it down again in order. */
import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { takeLock } from "../setup/lock.mjs";
import { homeFolder, needWritable, root } from "../setup/paths.mjs";
import { prepare } from "../setup/prepare.mjs";
import { Refusal } from "../setup/refusal.mjs";
import { say, step } from "../setup/terminal.mjs";
import { banner } from "./banner.mjs";
import { bringUp } from "./bring-up.mjs";
import { keepGuard } from "./keep-guard.mjs";
import { clearLeftovers } from "./leftovers.mjs";
import { listModels } from "./models.mjs";
import { whyNotFree } from "./port.mjs";
import { livingRecords } from "./records.mjs";
import { startSettings } from "./settings.mjs";
import { watchStopRequests } from "./stop-request.mjs";
import { killAll, stopInOrder } from "./stop.mjs";

export async function start() {
  const handlers = watchStopRequests();
  if (existsSync(join(root, ".env"))) process.loadEnvFile(join(root, ".env")); // the file that Docker Compose reads too
  const env = process.env;
  const settings = startSettings(env);
  const home = homeFolder(env);
  const records = join(home, "run");

  // Whatever can be refused is refused before minutes are spent on setting up.
  needWritable(home, "make it writable, or set BATON_HOME to a folder that is.");
  const holder = takeLock(join(home, "start.lock"));
  if (holder !== undefined)
    throw new Refusal(
      `Baton already runs in this folder (process ${holder.pid}): press Ctrl-C there, or \`kill ${holder.pid}\`.`,
    );
  await clearLeftovers(home, records);
  const models = listModels(settings.models, env.BATON_MODELS);
  await needHttpPort(settings);
  const { logs, brokers } = await prepare(env);

  const fleet = { records, logs, ending: false };
  const ended = new Promise((resolve, reject) => {
    handlers.stop = resolve;
    fleet.giveUp = reject;
  });
  ended.catch(() => {}); // looked at below, when what it interrupts has been interrupted
  handlers.atOnce = () => {
    killAll(records, livingRecords(records, process.pid));
    say("Killed.");
    process.exit(130);
  };
  const guard = keepGuard(records);
  try {
    const up = await Promise.race([bringUp({ fleet, settings, brokers, home, models }), ended]);
    if (up !== undefined) {
      say(banner({ ...up, models, settings, logs: relative(process.cwd(), logs) || logs }));
      await ended;
    }
  } finally {
    fleet.ending = true; // from here on a death is an end
    const running = livingRecords(records, process.pid);
    if (running.length > 0) say("Stopping: what was accepted is finished first (Ctrl-C again kills)");
    const onKilled = ({ name, graceMs }) => say(`${name} did not stop within ${graceMs / 1000} s and was killed.`);
    await step("Stopping", () => stopInOrder(records, running, { onKilled }));
    guard.dismiss();
  }
  say("Stopped. Data is kept for the next start.");
  process.exit(0);
}

async function needHttpPort({ httpPort, host }) {
  const code = await whyNotFree(httpPort, host);
  if (code === undefined) return;
  const reasons = {
    EADDRINUSE: `Port ${httpPort} is taken by another program: stop that, or choose another port, as in \`BATON_HTTP_PORT=8080 npm start\`.`,
    EACCES: `Port ${httpPort} (BATON_HTTP_PORT) is reserved for root: choose one above 1023.`,
    EADDRNOTAVAIL: `${host} (BATON_HOST) is not an address of this machine: 127.0.0.1 and 0.0.0.0 always are.`,
  };
  throw new Refusal(
    reasons[code] ?? `Baton cannot listen on ${host}:${httpPort} (${code}): set BATON_HOST and BATON_HTTP_PORT.`,
  );
}
