/**
 * Decides where Redis and NATS come from, in the order of least surprise: the URL that the user gave; a program that is there;
 * a package, if we may install one; Docker. Nothing is started here.
 */
import { aptInstall, canAptInstall } from "./apt-install.mjs";
import { brokerAdvice } from "./broker-advice.mjs";
import { brokerImage, brokerKinds } from "./broker-kinds.mjs";
import { findProgram } from "./find-program.mjs";
import { join } from "node:path";
import { Refusal } from "./refusal.mjs";
import { runCommand } from "./run-command.mjs";
import { step } from "./terminal.mjs";

/**
 * For each broker: `{url}`, `{program, version}` or `{image}`.
 * `programsOnly`: tests start, freeze and kill servers of their own, so neither a URL nor a container will do.
 */
export async function findBrokers(env, logFolder, { programsOnly = false } = {}) {
  const found = {};
  const missing = {};
  const tried = [];
  for (const [name, kind] of Object.entries(brokerKinds)) {
    if (env[kind.url] && !programsOnly) {
      found[name] = { url: env[kind.url] };
      continue;
    }
    const { program, version, tooOld } = await findProgram(kind.programs, kind.floor);
    if (program !== undefined) found[name] = { program, version };
    else missing[name] = kind;
    if (program === undefined && tooOld.length > 0) tried.push(`${tooOld.join(", ")} is too old`);
  }
  const isMissing = () => Object.keys(missing).length > 0;

  if (isMissing() && canAptInstall()) {
    const problem = await aptInstall(Object.values(missing), join(logFolder, "apt.log"));
    if (problem !== undefined) tried.push(problem);
    for (const [name, kind] of Object.entries(missing)) {
      const { program, version } = await findProgram(kind.programs, kind.floor);
      if (program === undefined) continue;
      found[name] = { program, version };
      delete missing[name];
    }
  }
  if (isMissing() && !programsOnly) {
    const problem = await fromDocker(found, missing, join(logFolder, "docker.log"));
    if (problem !== undefined) tried.push(problem);
  }
  if (isMissing()) throw new Refusal(brokerAdvice(Object.values(missing), tried));
  return found;
}

async function fromDocker(found, missing, log) {
  const engine = await step("Asking for Docker", () => runCommand("docker", ["info"], { timeoutMs: 10_000 }));
  if (engine.code === -1) return "there is no docker command";
  if (engine.code !== 0) return "Docker's engine does not answer";
  for (const name of Object.keys(missing)) {
    const image = brokerImage(name);
    const present = await runCommand("docker", ["image", "inspect", image], { log });
    if (present.code !== 0) {
      const pull = await step(`Fetching ${image} (docker pull)`, () => runCommand("docker", ["pull", image], { log }));
      if (pull.code !== 0) return `\`docker pull ${image}\` failed`;
    }
    found[name] = { image };
    delete missing[name];
  }
  return undefined;
}
