/** The npm that is running this script, or else the one on the PATH: a person may have several, and picked one. */
import { existsSync } from "node:fs";
import { root } from "./paths.mjs";
import { Refusal } from "./refusal.mjs";
import { runCommand } from "./run-command.mjs";

export async function npm(args, log) {
  const own = process.env.npm_execpath;
  const [program, ...first] = own?.endsWith("npm-cli.js") && existsSync(own) ? [process.execPath, own] : ["npm"];
  const result = await runCommand(program, [...first, ...args], { cwd: root, log });
  if (result.code === -1 && result.output.includes("ENOENT"))
    throw new Refusal(
      `There is no npm on the PATH, and \`npm ${args.join(" ")}\` has to run: install npm (it comes with Node.js).`,
    );
  return result;
}
