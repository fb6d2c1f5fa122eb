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
/** A model that others have overtaken by this much has failed to load; its worker's log says why. */
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

  const { gateway, workers } = processPlans(settings, urls);
  const members = [gateway, ...workers].map((plan) => startMember(plan, fleet));
  const url = `http://localhost:${settings.httpPort}`;
  const at = `http://${settings.host === "0.0.0.0" || settings.host === "::" ? "127.0.0.1" : settings.host}:${settings.httpPort}`;
  const count = `${settings.workers} worker${settings.workers === 1 ? "" : "s"}`;
  const unready = await step(`Starting the gateway and ${count}`, async () => {
    await Promise.all(members.map((member) => member.firstWell));
    await until(
      fleet,
      FLEET_MS,
      () => isReady(`${at}/v2/health/ready`),
      `the gateway did not become ready; see ${fleet.logs}`,
    );
    return await waitForModels(fleet, at, models);
  });
  return { url, unready, brokers: told };
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
async function waitForModels(fleet, at, models) {
  const startedAt = performance.now();
  for (;;) {
    const ready = await Promise.all(models.map((name) => isReady(`${at}/v2/models/${encodeURIComponent(name)}/ready`)));
    const unready = models.filter((_, i) => !ready[i]);
    const failed = unready.length === 0 ? new Map() : await failedModels(`${at}/v2/fleet`);
    const mayCome = unready.some((name) => !failed.has(name)) && performance.now() - startedAt < LAST_MODEL_MS;
    if (!mayCome || fleet.ending) return unready.map((name) => ({ name, reason: failed.get(name) }));
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
