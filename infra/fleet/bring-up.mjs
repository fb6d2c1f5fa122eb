/** From nothing to "models are ready", in the order of need: the brokers; then gateway and workers together; then every model. */
import { setTimeout as pause } from "node:timers/promises";
import { Refusal } from "../setup/refusal.mjs";
import { step } from "../setup/terminal.mjs";
import { brokerPlan, choosePort, isServing, needAnswer } from "./brokers.mjs";
import { startMember } from "./member.mjs";
import { failedModels, isReady } from "./models.mjs";
import { processPlans } from "./processes.mjs";

/** Redis may have much to load; a hanging one shall still end in a sentence. */
const BROKER_MS = 300_000;
const FLEET_MS = 120_000;
/** Once one worker serves its models, so much is left to the others. */
const LAST_MODEL_MS = 15_000;
const POLL_MS = 50;
const USUAL_PORTS = { redis: 6379, nats: 4222 };

/** Resolves with `{url, unready, brokers}` for the banner. A member that does not stay up goes to `fleet.giveUp`. */
export async function bringUp({ fleet, settings, brokers, home, models }) {
  const urls = {};
  const told = {};
  await Promise.all(
    Object.keys(brokers).map(async (name) => {
      [urls[name], told[name]] = await bringUpBroker(name, { fleet, settings, found: brokers[name], home });
    }),
  );

  const since = Date.now();
  const { gateway, workers } = processPlans(settings, urls);
  const members = [gateway, ...workers].map((plan) => startMember(plan, fleet));
  const url = `http://localhost:${settings.httpPort}`;
  const at = `http://${settings.host === "0.0.0.0" || settings.host === "::" ? "127.0.0.1" : settings.host}:${settings.httpPort}`;
  const count = `${settings.workers} worker${settings.workers === 1 ? "" : "s"}`;
  const unready = await step(`Starting the gateway and ${count}`, async () => {
    let well = 0;
    for (const member of members) void member.firstWell.then(() => (well += 1));
    await until(
      fleet,
      FLEET_MS,
      () => well === members.length,
      `not all of the gateway and ${count} are up; see ${fleet.logs}`,
    );
    return await waitForModels(fleet, { at, models, workers: settings.workers, since });
  });
  const isHopeless = unready.length === models.length && unready.every(({ reason }) => reason !== undefined);
  if (!fleet.ending && isHopeless) throw noModels(settings.models, unready);
  return { url, unready, brokers: told };
}

/**
 * A fleet without a model is of no use to anybody, and whoever started it can mend it. One whose
 * workers have not yet said why is still loading, and runs on.
 */
function noModels(repository, unready) {
  const reasons = unready.map(({ name, reason }) => `\n  ${name}: ${reason}`);
  return new Refusal(
    `None of the models in ${repository} (BATON_MODEL_REPOSITORY) can be served:${reasons.join("")}\n` +
      "Mend one of them, or unset BATON_MODEL_REPOSITORY for the demo models.",
  );
}

async function bringUpBroker(name, { fleet, settings, found, home }) {
  if (found.url !== undefined) {
    await needAnswer(`BATON_${name.toUpperCase()}_URL`, found.url, USUAL_PORTS[name]);
    return [found.url, "at the given URL"];
  }
  const port = await choosePort(name, settings[name]);
  const member = startMember(brokerPlan(name, found, port, home), fleet);
  await step(`Starting ${name}`, () =>
    until(fleet, BROKER_MS, () => isServing(name, port), `${name} did not answer; see ${fleet.logs}`),
  );
  member.becomeWell();
  return [`${name}://127.0.0.1:${port}`, `${found.version ?? found.image} on port ${port}`];
}

/** Resolves with the models that are not served, and the reason where a worker gave one. */
async function waitForModels(fleet, { at, models, workers, since }) {
  let giveUpAt = performance.now() + FLEET_MS;
  let someReady = false;
  for (;;) {
    const failed = await failedModels(`${at}/v2/fleet`, workers, since);
    const ready = await Promise.all(models.map((name) => isReady(`${at}/v2/models/${encodeURIComponent(name)}/ready`)));
    if (ready.includes(true) && !someReady) {
      someReady = true;
      giveUpAt = performance.now() + LAST_MODEL_MS;
    }
    const allTold = failed !== undefined || !ready.includes(false);
    const admits = !someReady || (await isReady(`${at}/v2/health/ready`));
    if ((allTold && admits) || fleet.ending || performance.now() > giveUpAt) {
      return models.filter((_, i) => !ready[i]).map((name) => ({ name, reason: failed?.get(name) }));
    }
    await pause(POLL_MS);
  }
}

async function until(fleet, limitMs, isDone, problem) {
  const startedAt = performance.now();
  while (!(await isDone())) {
    if (fleet.ending) return;
    if (performance.now() - startedAt > limitMs) throw new Refusal(`After ${limitMs / 1000} s ${problem}.`);
    await pause(POLL_MS);
  }
}
