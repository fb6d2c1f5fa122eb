/** Compiles when the sources differ from those that dist/ was built from, by content: a checkout or a touched file alone costs nothing. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { npm } from "./npm.mjs";
import { root } from "./paths.mjs";
import { Refusal } from "./refusal.mjs";
import { lastLines } from "./run-command.mjs";
import { step } from "./terminal.mjs";

const STAMP = join(root, "dist/.built-from");
const FILES = ["package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json", "infra/copy-scripts.mjs"];
const FOLDERS = ["gateway", "worker", "shared", "test/bench"];
const PRODUCTS = ["dist/gateway/main.js", "dist/worker/main.js"];

export async function build(logFolder) {
  const sources = fingerprint();
  const current = existsSync(STAMP) && readFileSync(STAMP, "utf8") === sources;
  if (current && PRODUCTS.every((file) => existsSync(join(root, file)))) return;
  // A build that fails leaves some of its files in dist/, which then is what no sources made.
  rmSync(STAMP, { force: true });
  const log = join(logFolder, "build.log");
  const { code, output } = await step("Building", () => npm(["run", "build"], log));
  if (code !== 0) throw new Refusal(`The build failed (all of its output: ${log}):\n${lastLines(output, 12)}`);
  writeFileSync(STAMP, sources);
}

function fingerprint() {
  const hash = createHash("sha256");
  const names = [...FILES];
  for (const folder of FOLDERS) {
    if (!existsSync(join(root, folder))) continue;
    for (const name of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })) {
      if (/\.(ts|lua)$/.test(name) && !name.endsWith(".test.ts")) names.push(`${folder}/${name}`);
    }
  }
  for (const name of names.sort())
    hash
      .update(`${name}\0`)
      .update(readFileSync(join(root, name)))
      .update("\0");
  return hash.digest("hex");
}
