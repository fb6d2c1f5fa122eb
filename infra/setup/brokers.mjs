/**
 * Decides the source of Redis and NATS, in the order of least surprise: the user's URL; a program
 * on this machine; a package, if this process may install packages; Docker. It starts neither
 * server.
 */
import { accessSync, constants, existsSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { atLeast, brokerAdvice, brokerImage, brokerKinds, brokerNames } from "./broker-kinds.mjs";
import { lastLines, runCommand } from "./command.mjs";
import { Refusal, step } from "./terminal.mjs";

/** @typedef {import("./broker-kinds.mjs").BrokerName} BrokerName */
/** @typedef {import("./broker-kinds.mjs").BrokerKind} BrokerKind */
/** @typedef {{ program: string, version: string } | { image: string }} PrivateBroker */
/** @typedef {{ url: string } | PrivateBroker} FoundBroker */

/** An ordinary user's PATH lacks /usr/sbin, the folder of Debian's nats-server. */
const USUAL_FOLDERS = [
  "/usr/local/bin",
  "/usr/bin",
  "/usr/local/sbin",
  "/usr/sbin",
  "/opt/homebrew/bin",
  join(homedir(), "go/bin"),
];
const APT = "/usr/bin/apt-get";
/** Debian's package scripts ask this program before they start a service; status 101 is "no". */
const SERVICE_POLICY = "/usr/sbin/policy-rc.d";

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {string} logFolder
 * @param {{ programsOnly?: boolean }} [options] `programsOnly`: accepts neither a URL nor a
 *   container, because tests start, freeze and kill their own servers
 * @returns {Promise<Record<BrokerName, FoundBroker>>}
 * @throws {Refusal} with the programs to install, if a server is missing
 */
export async function findBrokers(env, logFolder, { programsOnly = false } = {}) {
  /** @type {Map<BrokerName, FoundBroker>} */
  const found = new Map();
  /** @type {string[]} */
  const tried = [];
  const missing = () => brokerNames.filter((name) => !found.has(name));
  const look = async (/** @type {BrokerName} */ name) => {
    const { best, tooOld } = await findProgram(brokerKinds[name]);
    if (best !== undefined) found.set(name, best);
    return tooOld;
  };

  for (const name of brokerNames) {
    const url = env[brokerKinds[name].url];
    if (url && !programsOnly) {
      found.set(name, { url });
      continue;
    }
    const tooOld = await look(name);
    if (!found.has(name) && tooOld.length > 0) tried.push(`${tooOld.join(", ")} is too old`);
  }
  if (missing().length > 0 && canAptInstall()) {
    const kinds = missing().map((name) => brokerKinds[name]);
    const problem = await aptInstall(kinds, join(logFolder, "apt.log"));
    if (problem !== undefined) tried.push(problem);
    for (const name of missing()) await look(name);
  }
  if (missing().length > 0 && !programsOnly) {
    const problem = await pullImages(missing(), found, join(logFolder, "docker.log"));
    if (problem !== undefined) tried.push(problem);
  }
  const [redis, nats] = [found.get("redis"), found.get("nats")];
  if (redis !== undefined && nats !== undefined) return { redis, nats };
  throw new Refusal(
    brokerAdvice(
      missing().map((name) => brokerKinds[name]),
      tried,
    ),
  );
}

/**
 * Looks for a server's program on the PATH and in the usual folders of packages.
 *
 * @param {BrokerKind} kind
 * @returns {Promise<{ best?: { program: string, version: string }, tooOld: string[] }>} the first
 *   program that is new enough, and the older programs before it
 */
async function findProgram({ programs, floor }) {
  const path = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const tooOld = [];
  for (const name of programs) {
    for (const folder of new Set([...path, ...USUAL_FOLDERS])) {
      const program = join(folder, name);
      if (!isExecutable(program)) continue;
      const { code, output } = await runCommand(program, ["--version"], { timeoutMs: 5_000 });
      // The output is like "Redis server v=7.0.15 …" or "nats-server: v2.9.10".
      const version = code === 0 ? /v=?(\d+\.\d+(\.\d+)?)/.exec(output)?.[1] : undefined;
      if (version !== undefined && atLeast(version, floor)) return { best: { program, version }, tooOld };
      tooOld.push(`${program} (${version ?? "does not run"})`);
    }
  }
  return { tooOld };
}

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // absent and not executable are the same answer here
  }
}

function canAptInstall() {
  return process.platform === "linux" && process.getuid?.() === 0 && isExecutable(APT);
}

/**
 * Installs server packages on Debian and Ubuntu. A package would start a system service on the
 * well-known port, now and at every boot; Baton runs private instances, so this function prevents
 * that.
 *
 * @param {readonly BrokerKind[]} kinds
 * @param {string} log
 * @returns {Promise<string | undefined>} the failure; undefined if all packages are installed
 */
async function aptInstall(kinds, log) {
  const names = kinds.map((kind) => kind.package);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C" };
  const apt = (/** @type {string[]} */ ...args) =>
    runCommand(APT, ["-o", "DPkg::Lock::Timeout=120", ...args], { log, env });
  return await step(`Installing ${names.join(" and ")} (apt-get)`, async () => {
    const update = await apt("update", "-q");
    for (const { package: name, floor } of kinds) {
      const { output } = await runCommand("/usr/bin/apt-cache", ["policy", name], { log });
      const version = /Candidate: (?:\d+:)?(\d+\.\d+)/.exec(output)?.[1];
      if (version === undefined && update.code !== 0) return `apt-get update failed:\n${lastLines(update.output, 3)}`;
      if (version === undefined) return `no apt source has ${name}`;
      if (!atLeast(version, floor)) return `apt has ${name} ${version} only`;
    }
    const holdServices = !existsSync(SERVICE_POLICY);
    if (holdServices) writeFileSync(SERVICE_POLICY, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
    try {
      const install = await apt("install", "-y", "-q", "--no-install-recommends", ...names);
      if (install.code !== 0) return `apt-get install failed:\n${lastLines(install.output, 3)}`;
    } finally {
      if (holdServices) rmSync(SERVICE_POLICY, { force: true });
    }
    if (existsSync("/run/systemd/system")) await runCommand("systemctl", ["disable", ...names], { log });
    return undefined;
  });
}

/**
 * Has Docker fetch the images of the missing servers, and notes each in `found`.
 *
 * @param {readonly BrokerName[]} missing
 * @param {Map<BrokerName, FoundBroker>} found
 * @param {string} log
 * @returns {Promise<string | undefined>} the failure; undefined if all images are there
 */
async function pullImages(missing, found, log) {
  const engine = await step("Asking for Docker", () => runCommand("docker", ["info"], { timeoutMs: 10_000 }));
  if (engine.output.includes("ENOENT")) return "there is no docker command";
  if (engine.code !== 0) return "Docker's engine does not answer";
  for (const name of missing) {
    const image = brokerImage(name);
    const present = await runCommand("docker", ["image", "inspect", image], { log });
    if (present.code !== 0) {
      const pull = await step(`Fetching ${image} (docker pull)`, () => runCommand("docker", ["pull", image], { log }));
      if (pull.code !== 0) return `\`docker pull ${image}\` failed`;
    }
    found.set(name, { image });
  }
  return undefined;
}
