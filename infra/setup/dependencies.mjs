/**
 * Installs what package-lock.json says when node_modules does not hold it. The answer is read from npm's own record of what it
 * installed, so an `npm ci` or `npm install` by hand counts, and one that was interrupted does not.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { npm } from "./npm.mjs";
import { root } from "./paths.mjs";
import { Refusal } from "./refusal.mjs";
import { lastLines } from "./run-command.mjs";
import { step } from "./terminal.mjs";

/** Why the dependencies have to be installed, or undefined when they are all there. */
export function whyStale(folder = root, { platform, arch } = process) {
  const wanted = readPackages(join(folder, "package-lock.json"));
  if (wanted === undefined)
    throw new Refusal(
      `${join(folder, "package-lock.json")} is missing or damaged: restore it (git checkout package-lock.json).`,
    );
  const installed = readPackages(join(folder, "node_modules/.package-lock.json"));
  if (installed === undefined) return "not installed yet";
  const fits = (list, value) => list === undefined || list.includes(value);
  for (const [path, entry] of Object.entries(wanted)) {
    if (path === "" || entry.link) continue;
    const name = path.replace(/^node_modules\//, "");
    const have = installed[path];
    // Packages for other machines stay away; which of those for several libcs belongs here is npm's to choose.
    const forHere = fits(entry.os, platform) && fits(entry.cpu, arch) && entry.libc === undefined;
    if (have === undefined && entry.optional && !forHere) continue;
    if (have === undefined && entry.optional && entry.os === undefined) continue;
    if (have?.version !== entry.version) return `${name} is not at ${entry.version}`;
    if (!existsSync(join(folder, path, "package.json"))) return `${name} is gone`;
  }
  return undefined;
}

export async function installDependencies(logFolder) {
  if (whyStale() === undefined) return;
  const log = join(logFolder, "npm.log");
  // Asked for in words: a NODE_ENV of production would leave out the compiler.
  const args = ["ci", "--include=dev", "--no-audit", "--no-fund"];
  const { code, output } = await step("Installing dependencies (npm ci)", () => npm(args, log));
  if (code !== 0)
    throw new Refusal(
      `\`npm ci\` failed, so nothing can be started (all of its output: ${log}). Its last words:\n${lastLines(output)}`,
    );
}

function readPackages(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8")).packages;
  } catch {
    return undefined; // absent or cut off: either way it proves nothing
  }
}
