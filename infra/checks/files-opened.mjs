/**
 * Counts the files that a reader opens to follow a request: the files whose code runs for the
 * request, as V8 counts function calls in a gateway and a worker. Leaves out code that also runs
 * without a request. A path as argument counts another built checkout.
 *
 * Needs `npm run build`, redis-server and nats-server; prints each list with `--list`.
 */
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { createServer as createReceiver } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { Calls } from "./calls.mjs";

const root = resolve(process.argv.slice(2).find((argument) => !argument.startsWith("--")) ?? ".");
const list = process.argv.includes("--list");
const folder = mkdtempSync(join(tmpdir(), "baton-files-"));
/** @type {import("node:child_process").ChildProcess[]} */
const children = [];
process.once("exit", () => {
  for (const { pid } of children) if (pid !== undefined) tryToKill(-pid);
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130));

for (const model of ["accumulate", "tale-gpt"])
  cpSync(join(root, "infra/models", model), join(folder, model), { recursive: true });
const [redisPort, natsPort, httpPort] = await Promise.all([freePort(), freePort(), freePort()]);
/** How often the receiver of webhooks has been asked. */
let received = 0;
const receiver = createReceiver((request, response) => {
  received += 1;
  request.resume();
  response.writeHead(204).end();
});
const receiverPort = await listening(receiver);
// Processes refuse a Redis that does not keep acknowledged writes.
const kept = ["--appendonly", "yes", "--appendfsync", "always"];
launch("redis-server", ["--port", String(redisPort), "--dir", folder, "--save", "", ...kept]);
launch("nats-server", ["--port", String(natsPort), "--addr", "127.0.0.1", "--jetstream", "--store_dir", folder]);
const env = {
  ...process.env,
  BATON_REDIS_URL: `redis://127.0.0.1:${redisPort}`,
  BATON_NATS_URL: `nats://127.0.0.1:${natsPort}`,
  BATON_HTTP_PORT: String(httpPort),
  BATON_HOST: "127.0.0.1",
  BATON_MODEL_REPOSITORY: folder,
  BATON_WEBHOOK_ALLOW: "127.0.0.1/32",
  // A worker's supervisor sets this, too.
  ORT_DISABLE_TELEMETRY: "1",
};
const webhook = { url: `http://127.0.0.1:${receiverPort}/`, events: ["job.completed"] };
const url = `http://127.0.0.1:${httpPort}`;
const gateway = await launchWatched("gateway/main.js");
// Not the supervisor, because it starts the bundle that `npm run build` makes of these files.
const workerProgram = "worker/main.js";
const worker = await launchWatched(workerProgram);
const jobs = await launchWatched("gateway/doors/jobs/main.js");
await until(async () => (await fetch(`${url}/v2/models/tale-gpt/ready`)).ok);
await until(async () => (await fetch(`${url}/v2/models/accumulate/ready`)).ok);

// Everything runs once before the count, because code for the first request alone does not count.
await step(true);
await step(false);
await chat();
await job({ delay: 1_000, webhook });
/** Code that runs without a request. The worker also stops for a moment, like below. */
const idle = {
  gateway: await gateway.during(() => pause(6_000)),
  jobs: await jobs.during(() => pause(6_000)),
  worker: await worker.during(async () => {
    worker.signal("SIGSTOP");
    await pause(150);
    worker.signal("SIGCONT");
    await pause(6_000);
  }),
};

/** @type {Set<string>[]} */
const enters = [];
/** @type {Set<string>[]} */
const runs = [];
const chats = { gateway: new Set(), worker: new Set() };
for (let repetition = 0; repetition < 3; repetition += 1) {
  const ran = await worker.during(async () => {
    worker.signal("SIGSTOP");
    let answer = Promise.resolve();
    const entered = await gateway.during(async () => {
      answer = step(false);
      await pause(150); // shorter than the silence after which a gateway looks into Redis
    });
    enters.push(entered);
    worker.signal("SIGCONT");
    await answer;
  });
  runs.push(ran);
}
chats.worker = await worker.during(async () => {
  chats.gateway = await gateway.during(chat);
});

/** @type {Set<string>[]} */
const dues = [];
/** @type {Set<string>[]} */
const told = [];
for (let repetition = 0; repetition < 3; repetition += 1) {
  dues.push(await jobs.during(() => job({ delay: 1_000 })));
  told.push(await jobs.during(() => job({ delay: 1_000, webhook })));
}

const second = await launchWatched(workerProgram);
await pause(3_000);
await second.during(() => pause(6_000));
const resumed = await second.during(async () => {
  second.signal("SIGSTOP");
  await pause(1_500); // its lease ends, so the first worker is alone
  const answer = chat();
  await pause(300);
  second.signal("SIGCONT");
  worker.signal("SIGKILL");
  await answer;
});

report("a step on its way in", without(inAll(enters), idle.gateway));
report("a step in the worker", without(inAll(runs), idle.worker));
report(
  "a chat to its events",
  new Set([...without(chats.gateway, idle.gateway), ...without(chats.worker, idle.worker)]),
);
report("a takeover, beyond a stream", without(without(resumed, idle.worker), chats.worker));
report("a due job, in the jobs process", without(inAll(dues), idle.jobs));
report("its webhook, beyond a due job", without(without(inAll(told), idle.jobs), inAll(dues)));
process.exit(0);

/**

 * @param {string} title

 * @param {Set<string>} functions

 */
function report(title, functions) {
  const files = [...new Set([...functions].map((name) => name.split("#", 1)[0] ?? name))].toSorted();
  const own = files.filter((file) => !file.startsWith("shared/")).length;
  const http = files.filter((file) => file.startsWith("gateway/http/")).length;
  console.log(`${title}: ${files.length} files, ${own} of them not in shared/, ${http} in gateway/http/`);
  if (list) for (const file of files) console.log(`  ${file}`);
}

/**

 * @param {Set<string>} functions

 * @param {Set<string>} others

 */
function without(functions, others) {
  return new Set([...functions].filter((name) => !others.has(name)));
}

/**
 * The functions that ran in every repetition, without functions that ran by chance.
 *
 * @param {Set<string>[]} repetitions
 */
function inAll([first = new Set(), ...others]) {
  return new Set([...first].filter((name) => others.every((other) => other.has(name))));
}

/** @param {boolean} starts */
async function step(starts) {
  const response = await fetch(`${url}/v2/models/accumulate/infer`, {
    method: "POST",
    body: JSON.stringify({
      parameters: { sequence_id: 7, sequence_start: starts },
      inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
    }),
  });
  if (!response.ok) throw new Error(await response.text());
  await response.text();
}

async function chat() {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify({
      model: "tale-gpt",
      stream: true,
      seed: 3,
      messages: [{ role: "user", content: "Write a short story about a cat who discovers a secret portal." }],
    }),
  });
  if (!response.ok) throw new Error(await response.text());
  await response.text();
}

/**
 * Submits a job. Resolves when the job has ended, and its webhook has been asked.
 *
 * @param {object} options of the job
 */
async function job(options) {
  const before = received;
  const input = { name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] };
  const parameters = { sequence_id: 7 };
  const response = await fetch(`${url}/v2/models/accumulate/jobs`, {
    method: "POST",
    body: JSON.stringify({ infer: { parameters, inputs: [input] }, ...options }),
  });
  const { id, error } = /** @type {{ id?: string, error?: string }} */ (await response.json());
  if (response.status !== 202) throw new Error(error);
  await until(async () => {
    const answer = await fetch(`${url}/v2/jobs/${id}`);
    const { state } = /** @type {{ state?: string }} */ (await answer.json());
    return state === "completed" && (!("webhook" in options) || received > before);
  });
  await pause(500); // the jobs process notes the end of the delivery
}

/**

 * @param {string} program

 * @param {string[]} args

 * @param {NodeJS.ProcessEnv} [environment]

 */
function launch(program, args, environment = process.env) {
  const child = spawn(program, args, { env: environment, stdio: ["ignore", "ignore", "pipe"], detached: true });
  children.push(child);
  return child;
}

/**
 * Starts a program of the fleet with an inspector in each of its processes, and watches the process
 * that does the work: the supervisor's child, if there is a supervisor.
 *
 * @param {string} program
 */
async function launchWatched(program) {
  const child = launch(process.execPath, [join(root, "dist", program)], {
    ...env,
    NODE_OPTIONS: "--inspect=127.0.0.1:0",
  });
  /** @type {string[]} */
  const inspectors = [];
  child.stderr?.setEncoding("utf8").on("data", (text) => {
    for (const [, address] of text.matchAll(/Debugger listening on (ws:\S+)/g)) inspectors.push(address);
  });
  await until(async () => inspectors.length > 0);
  const calls = new Calls(inspectors[0] ?? "");
  await calls.open();
  const built = pathToFileURL(join(root, "dist/")).href;
  return {
    /** @param {NodeJS.Signals} name */
    signal: (name) => tryToKill(-(child.pid ?? 0), name),
    /**
     * @param {() => Promise<unknown>} work
     * @returns {Promise<Set<string>>} functions that ran meanwhile
     */
    async during(work) {
      await calls.take(built);
      await work();
      return new Set(await calls.take(built));
    },
  };
}

/**

 * @param {number} pid

 * @param {NodeJS.Signals} [name]

 */
function tryToKill(pid, name = "SIGKILL") {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

async function freePort() {
  const server = createServer();
  const port = await listening(server);
  await new Promise((settle) => server.close(settle));
  return port;
}

/**
 * @param {import("node:net").Server} server
 * @returns {Promise<number>} its port
 */
function listening(server) {
  return new Promise((settle) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      settle(address !== null && typeof address === "object" ? address.port : 0);
    });
  });
}

/** @param {() => Promise<boolean>} isDone */
async function until(isDone) {
  for (let tries = 0; tries < 600; tries += 1) {
    if (await isDone().catch(() => false)) return;
    await pause(100);
  }
  throw new Error("the fleet did not come up within a minute");
}
