/**
 * From nothing to models that are ready, in the order of need: the brokers; then the gateway,
 * the jobs process and the workers together; then every model.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Refusal, step } from "../setup/terminal.mjs";
import { askOwnGateway, ownScheme } from "./own-gateway.mjs";
import { startMember } from "./member.mjs";
import { natsOrigins, prepareNats } from "./nats-accounts.mjs";
import { chooseBrokerPort, isServing, LOCAL, needAnswer } from "./ports.mjs";
import { brokerPlan, processPlans } from "./processes.mjs";
import { noteRedisUrl, prepareOperatorKey, prepareRedisUsers, prepareSecrets } from "./secrets.mjs";
import { EXIT_UNUSABLE } from "./settings.mjs";

/** @typedef {import("../setup/broker-kinds.mjs").BrokerName} BrokerName */
/** @typedef {import("../setup/brokers.mjs").FoundBroker} FoundBroker */
/** @typedef {import("./processes.mjs").RoleEnv} RoleEnv */
/** @typedef {{ name: string, reason: string | undefined }} UnreadyModel */

/**
 * @typedef {object} BringUp
 * @property {import("./member.mjs").Fleet} fleet its `giveUp` hears of a member that keeps dying
 * @property {import("./settings.mjs").Settings} settings
 * @property {Record<BrokerName, FoundBroker>} brokers
 * @property {string} home
 * @property {readonly string[]} models the names of the models to serve
 */

/**
 * The longest wait for a broker, in ms. Redis may have much data to load, but a start must also end
 * if a broker hangs.
 */
const BROKER_MS = 300_000;
/** The longest wait for our processes, and then for the first model, in ms each. */
const FLEET_MS = 120_000;
/** The longest wait for the other models after a worker serves the first model, in ms. */
const LAST_MODEL_MS = 15_000;
const POLL_MS = 50;
const USUAL_PORTS = { redis: 6379, nats: 4222 };

/**
 * @param {BringUp} plan
 * @returns the facts for the banner
 * @throws {Refusal} if there could be no operator's key, a process does not come up in time, or
 *   workers can serve no model
 */
export async function bringUp({ fleet, settings, brokers, home, models }) {
  const asked = process.env["BATON_AUTH"] ?? "";
  const asksForKeys = asked.includes("keys");
  if (asked.includes("jwt") && !asksForKeys) {
    throw new Refusal("npm start asks its gateway with an operator's key: set BATON_AUTH=keys,jwt.", EXIT_UNUSABLE);
  }
  if (asksForKeys && process.env["BATON_KEYS_STORE"] === "file") {
    throw new Refusal(
      "npm start asks its gateway with an operator's key in Redis: set BATON_KEYS_STORE=both.",
      EXIT_UNUSABLE,
    );
  }
  if ((process.env["BATON_TLS_CLIENT_CA_FILE"] ?? "") !== "") {
    throw new Refusal(
      "npm start asks its gateway without a client's certificate: unset BATON_TLS_CLIENT_CA_FILE.",
      EXIT_UNUSABLE,
    );
  }
  const secrets = await prepareSecrets(home, process.env);
  const [redis, nats] = await Promise.all([
    bringUpBroker("redis", brokers.redis, { fleet, settings, home }),
    bringUpBroker("nats", brokers.nats, { fleet, settings, home }),
  ]);

  noteRedisUrl(home, redis.operatorUrl);
  const operator = asksForKeys ? await prepareOperatorKey(secrets, redis.operatorUrl) : undefined;
  const since = Date.now();
  const urls = { redis: redis.url, nats: nats.url };
  const members = processPlans(settings, urls, [redis.env, nats.env], secrets).map((plan) => startMember(plan, fleet));
  const { host, httpPort } = settings;
  const scheme = ownScheme(process.env);
  const own = `${scheme}://${host === "0.0.0.0" || host === "::" ? LOCAL : host}:${httpPort}`;
  const count = `${settings.workers} worker${settings.workers === 1 ? "" : "s"}`;
  const unready = await step(`Starting the gateway, the jobs process and ${count}`, async () => {
    let up = 0;
    for (const member of members) void member.firstUp.then(() => (up += 1));
    const problem = `not all of the gateway, the jobs process and ${count} are up; see ${fleet.logs}`;
    await until(fleet, FLEET_MS, async () => up === members.length, problem);
    return await waitForModels(fleet, { own, key: operator?.key, models, workers: settings.workers, since });
  });
  // A fleet without a model is of no use, and a person can mend the models. If workers have not yet
  // said why a model is missing, the fleet is still loading, and keeps running.
  const isHopeless = unready.length === models.length && unready.every(({ reason }) => reason !== undefined);
  if (!fleet.ending && isHopeless) {
    const reasons = unready.map(({ name, reason }) => `\n  ${name}: ${reason}`);
    throw new Refusal(
      `None of the models in ${settings.repository} (BATON_MODEL_REPOSITORY) can be served:${reasons.join("")}\n` +
        "Mend one of them, or unset BATON_MODEL_REPOSITORY for the demo models.",
    );
  }
  return {
    url: `${scheme}://localhost:${httpPort}`,
    keyFile: operator?.file,
    unready,
    brokers: { redis: redis.told, nats: nats.told },
  };
}

/**
 * @param {BrokerName} name
 * @param {FoundBroker} found
 * @param {Pick<BringUp, "fleet" | "settings" | "home">} plan
 * @returns {Promise<{ url: string, operatorUrl: string, told: string, env: RoleEnv }>} its URL, the
 *   URL for the program `keys`, the banner's words about it, and settings with which it lets the
 *   fleet in
 */
async function bringUpBroker(name, found, { fleet, settings, home }) {
  if ("url" in found) {
    await needAnswer(`BATON_${name.toUpperCase()}_URL`, found.url, USUAL_PORTS[name]);
    const env = { gateway: {}, jobs: {}, worker: {} };
    return { url: found.url, operatorUrl: found.url, told: "at the given URL", env };
  }
  const port = await chooseBrokerPort(name, settings[name]);
  const at = `${LOCAL}:${port}`;
  const natsOfStart = async () => {
    const origins = natsOrigins(process.env, settings.httpPort);
    const webSocketPort = await chooseBrokerPort("nats for browsers", settings.natsWebSocket, "BATON_NATS_WS_PORT");
    const env = await prepareNats({ inContainer: "image" in found, home, port, webSocketPort, origins });
    return { env, more: { webSocketPort }, operator: "" };
  };
  const redisOfStart = async () => {
    const { env, file, password } = await prepareRedisUsers(home);
    return { env, more: { users: file }, operator: `operator:${encodeURIComponent(password)}@` };
  };
  const { env, more, operator } = await (name === "nats" ? natsOfStart() : redisOfStart());
  const member = startMember(brokerPlan(name, found, port, home, more), fleet);
  const problem = `${name} did not answer; see ${fleet.logs}`;
  await step(`Starting ${name}`, () => until(fleet, BROKER_MS, () => isServing(name, port), problem));
  member.setUp();
  const what = "version" in found ? found.version : found.image;
  return { url: `${name}://${at}`, operatorUrl: `${name}://${operator}${at}`, told: `${what} on port ${port}`, env };
}

/**
 * Waits until a worker serves each model or gives a reason. After the first served model, the other
 * models have a limited time.
 *
 * @param {import("./member.mjs").Fleet} fleet
 * @param {{ own: string, key: string | undefined, models: readonly string[], workers: number,
 *   since: number }} options `own`: the gateway's URL; `key`: of the operator, if the
 *   gateway asks for keys; `since`: when this start began to start workers
 * @returns {Promise<UnreadyModel[]>} the models that no worker serves, with a worker's reason, if
 *   any
 */
async function waitForModels(fleet, { own, key, models, workers, since }) {
  /** @param {string} path */
  const ask = (path) => {
    return askOwnGateway(`${own}${path}`, key === undefined ? {} : { authorization: `Bearer ${key}` }, 2_000);
  };
  let giveUpAt = performance.now() + FLEET_MS;
  let someReady = false;
  for (;;) {
    const failed = await failedModels(() => ask("/v2/fleet"), workers, since);
    const ready = await Promise.all(
      models.map((name) => isReady(() => ask(`/v2/models/${encodeURIComponent(name)}/ready`))),
    );
    if (ready.includes(true) && !someReady) {
      someReady = true;
      giveUpAt = performance.now() + LAST_MODEL_MS;
    }
    const allTold = failed !== undefined || !ready.includes(false);
    const isOpen = !someReady || (await isReady(() => ask("/v2/health/ready")));
    if ((allTold && isOpen) || fleet.ending || performance.now() > giveUpAt) {
      return models.filter((_, i) => !ready[i]).map((name) => ({ name, reason: failed?.get(name) }));
    }
    await pause(POLL_MS);
  }
}

/**
 * Why this start's own workers could not load models, by the model's name. A worker announces all
 * of its models at once.
 *
 * @param {() => Promise<Response>} ask asks for the fleet
 * @param {number} workerCount
 * @param {number} since an older worker is left over from an earlier start, and does not count
 * @returns {Promise<Map<string, string> | undefined>} undefined until all workers have joined
 */
async function failedModels(ask, workerCount, since) {
  try {
    const response = await ask();
    /** @type {{ workers: { started_at: string, failed: { name: string, reason: string }[] }[] }} */
    const { workers } = JSON.parse(await response.text());
    const own = workers.filter((worker) => Date.parse(worker.started_at) >= since);
    if (own.length < workerCount) return undefined;
    return new Map(own.flatMap(({ failed }) => failed).map(({ name, reason }) => [name, reason]));
  } catch {
    return undefined; // no gateway listens yet, or it cannot ask Redis; the wait has a limit
  }
}

/**
 * A gateway whose path of health is restricted says neither that it is ready nor that it is not.
 *
 * @param {() => Promise<Response>} ask
 */
async function isReady(ask) {
  try {
    const { ok, status } = await ask();
    return ok || status === 403;
  } catch {
    return false; // no gateway listens yet
  }
}

/**
 * @param {import("./member.mjs").Fleet} fleet the wait ends with the fleet
 * @param {number} limitMs
 * @param {() => Promise<boolean>} isDone
 * @param {string} problem the message when the time is over
 */
async function until(fleet, limitMs, isDone, problem) {
  const startedAt = performance.now();
  while (!(await isDone())) {
    if (fleet.ending) return;
    if (performance.now() - startedAt > limitMs) throw new Refusal(`After ${limitMs / 1000} s ${problem}.`);
    await pause(POLL_MS);
  }
}
