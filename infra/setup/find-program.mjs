/** Looks for a server on the PATH and where packages put servers: an ordinary user's PATH lacks /usr/sbin, where Debian has nats-server. */
import { delimiter, join } from "node:path";
import { homedir } from "node:os";
import { atLeast } from "./broker-kinds.mjs";
import { isExecutable } from "./paths.mjs";
import { runCommand } from "./run-command.mjs";

const USUAL = [
  "/usr/local/bin",
  "/usr/bin",
  "/usr/local/sbin",
  "/usr/sbin",
  "/opt/homebrew/bin",
  join(homedir(), "go/bin"),
];

/** The first program that is new enough, and the ones that were found too old. */
export async function findProgram(names, floor, path = process.env.PATH ?? "") {
  const folders = [...new Set([...path.split(delimiter).filter((folder) => folder !== ""), ...USUAL])];
  const tooOld = [];
  for (const name of names) {
    for (const folder of folders) {
      const program = join(folder, name);
      if (!isExecutable(program)) continue;
      const version = await versionOf(program);
      if (version !== undefined && atLeast(version, floor)) return { program, version, tooOld };
      tooOld.push(`${program} (${version ?? "does not run"})`);
    }
  }
  return { tooOld };
}

async function versionOf(program) {
  const { code, output } = await runCommand(program, ["--version"], { timeoutMs: 5_000 });
  // "Redis server v=7.0.15 …", "nats-server: v2.9.10"
  return code === 0 ? /v=?(\d+\.\d+(\.\d+)?)/.exec(output)?.[1] : undefined;
}
