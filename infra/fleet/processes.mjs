/**
 * The command of each process of the fleet, and the time that it may take to stop. The gateway, the
 * jobs process and the workers run built code with the brokers' addresses; a private broker listens
 * on this machine only, and keeps its data in our folder.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { needWritable, root } from "../setup/paths.mjs";
import { IN_CONTAINER, NATS_CONFIG } from "./nats-accounts.mjs";
import { LOCAL } from "./ports.mjs";

/** @typedef {import("../setup/broker-kinds.mjs").BrokerName} BrokerName */
/**
 * Settings with which a broker lets in each kind of process.
 *
 * @typedef {Record<"gateway" | "jobs" | "worker", NodeJS.ProcessEnv>} RoleEnv
 */

/**
 * @typedef {object} Plan how to start and stop a process
 * @property {string} name
 * @property {string} program
 * @property {string[]} args
 * @property {NodeJS.ProcessEnv} env
 * @property {string} cwd
 * @property {number} order lower orders stop first
 * @property {number} graceMs longest wait between SIGTERM and SIGKILL
 * @property {string} [container] the Docker container behind the process, if it has one
 * @property {string} [readyMessage] the log line which says that the process is up
 * @property {string} [diedMessage] the log line which says that the process for the work has died,
 *   and that the member itself restarts that process
 */

/**
 * The gateway and the jobs process stop first. They take no new work and finish the rest, for which
 * workers and brokers have to run. Then the workers stop, which hand back the remaining entries;
 * then the brokers, when no process writes any more.
 */
const STOP_ORDER = { gateway: 1, jobs: 1, worker: 2, nats: 3, redis: 4 };
/** More than the 25 s of BATON_DRAIN_MS, so that a drain ends by itself. */
const DRAIN_GRACE_MS = 35_000;
/** Redis writes its data before it ends; NATS's data is in its files already. */
const BROKER_GRACE_MS = { redis: 15_000, nats: 5_000 };
/** NATS keeps recent writes in memory for a while, up to about this limit. */
const NATS_MEMORY = "512MiB";
const CONFIG = { redis: join(root, "infra/redis.conf"), nats: join(root, "infra/nats.conf") };
/** The path of Redis's users in the container. */
const USERS_IN_CONTAINER = "/etc/baton-users.acl";
/** The ports of the brokers in their images. */
const PORT_IN_CONTAINER = { redis: 6379, nats: 4222 };

/**
 * @param {import("./settings.mjs").Settings} settings
 * @param {Record<BrokerName, string>} urls
 * @param {readonly RoleEnv[]} brokerEnvs of Redis and of NATS
 * @param {import("./secrets.mjs").Secrets} secrets
 * @returns {Plan[]} of the gateway, of the jobs process, then of the workers
 */
export function processPlans(settings, urls, brokerEnvs, secrets) {
  const common = {
    ...process.env,
    BATON_REDIS_URL: urls.redis,
    BATON_NATS_URL: urls.nats,
    BATON_HOST: settings.host,
    BATON_HTTP_PORT: String(settings.httpPort),
    // It is about the ports of containers, and .env may have it for Docker Compose.
    BATON_PUBLISH: "",
    BATON_MODEL_REPOSITORY: settings.repository,
    BATON_METRICS_TOKEN_FILE: secrets.BATON_METRICS_TOKEN_FILE,
    // Otherwise ONNX Runtime 1.30 reports to mobile.events.data.microsoft.com.
    ORT_DISABLE_TELEMETRY: "1",
  };
  // The setting is the gateway's port. Prometheus finds the ports of the others at the gateway.
  const besideGateway = { BATON_METRICS_PORT: process.env["BATON_METRICS_PORT"] === "off" ? "off" : "0" };
  const envOf = (/** @type {keyof RoleEnv} */ role) =>
    Object.assign({ ...common }, ...brokerEnvs.map((env) => env[role]));
  const node = { program: process.execPath, cwd: root, graceMs: DRAIN_GRACE_MS };
  const gateway = {
    ...node,
    name: "gateway",
    order: STOP_ORDER.gateway,
    args: [join(root, "dist/bundled/gateway/main.js")],
    env: { ...envOf("gateway"), BATON_AUTH_SECRET_FILE: secrets.BATON_AUTH_SECRET_FILE },
    readyMessage: "gateway listening",
  };
  const jobs = {
    ...node,
    name: "jobs",
    order: STOP_ORDER.jobs,
    args: [join(root, "dist/bundled/gateway/jobs.js")],
    // Look-ups of names run in threads, and a slow look-up must not delay the next.
    env: { UV_THREADPOOL_SIZE: "64", ...envOf("jobs"), ...besideGateway },
    readyMessage: "jobs ready",
  };
  const workers = Array.from({ length: settings.workers }, (_, i) => ({
    ...node,
    name: `worker-${i + 1}`,
    order: STOP_ORDER.worker,
    args: [join(root, "dist/worker/supervisor.js")],
    env: { ...envOf("worker"), ...besideGateway, BATON_WORKER_NAME: `worker-${i + 1}` },
    readyMessage: "worker ready",
    diedMessage: "worker process died",
  }));
  return [gateway, jobs, ...workers];
}

/**
 * @param {BrokerName} name
 * @param {import("../setup/brokers.mjs").PrivateBroker} found
 * @param {number} port
 * @param {string} home
 * @param {{ webSocketPort: number } | { users: string }} more NATS's port for browsers, or the file
 *   of Redis's users
 * @returns {Plan}
 */
export function brokerPlan(name, found, port, home, more) {
  const data = join(home, name);
  needWritable(data, "Redis and NATS keep their data there; make it writable, or set BATON_HOME.");
  const env = { GOMEMLIMIT: NATS_MEMORY, ...process.env };
  const plan = { name, order: STOP_ORDER[name], graceMs: BROKER_GRACE_MS[name], cwd: data, env };
  if ("program" in found) return { ...plan, program: found.program, args: programArgs(port, data, more) };
  // The name has a hash of the folder, because two checkouts need two containers.
  const container = `baton-${name}-${createHash("sha256").update(home).digest("hex").slice(0, 12)}`;
  return {
    ...plan,
    container,
    program: "docker",
    args: dockerArgs(name, found.image, port, data, container, more),
  };
}

/**
 * @param {number} port
 * @param {string} data
 * @param {{ webSocketPort: number } | { users: string }} more
 */
function programArgs(port, data, more) {
  if ("webSocketPort" in more) {
    return ["--config", join(data, NATS_CONFIG), "--addr", LOCAL, "--port", String(port), "--store_dir", data];
  }
  const place = ["--port", String(port), "--bind", LOCAL, "--protected-mode", "yes", "--dir", data];
  return [CONFIG.redis, ...place, "--aclfile", more.users];
}

/**
 * @param {BrokerName} name
 * @param {string} image
 * @param {number} port on this machine
 * @param {string} data
 * @param {string} container
 * @param {{ webSocketPort: number } | { users: string }} more the port is the same in the container
 */
function dockerArgs(name, image, port, data, container, more) {
  const inside = PORT_IN_CONTAINER[name];
  const user =
    process.getuid === undefined || process.getgid === undefined
      ? []
      : ["--user", `${process.getuid()}:${process.getgid()}`];
  const common = ["run", "--rm", "--init", "--name", container, "--publish", `${LOCAL}:${port}:${inside}`, ...user];
  const { common: config, data: folder } = IN_CONTAINER;
  const volumes = ["--volume", `${CONFIG[name]}:${config}:ro`, "--volume", `${data}:${folder}`];
  if ("users" in more) {
    const users = ["--volume", `${more.users}:${USERS_IN_CONTAINER}:ro`];
    const server = ["redis-server", config, "--dir", folder, "--protected-mode", "no"];
    return [...common, ...volumes, ...users, image, ...server, "--aclfile", USERS_IN_CONTAINER];
  }
  const publish = ["--publish", `${LOCAL}:${more.webSocketPort}:${more.webSocketPort}`];
  const server = ["nats-server", "--config", `${folder}/${NATS_CONFIG}`, "--port", String(inside)];
  return [...common, ...publish, ...volumes, image, ...server, "--store_dir", folder];
}
