/**
 * Compiles if dist/ comes from other sources. The comparison is by content, so a checkout or a
 * touched file alone costs nothing.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lastLines, npm } from "./command.mjs";
import { root } from "./paths.mjs";
import { Refusal, step } from "./terminal.mjs";

/** Holds the fingerprint of the sources of dist/. */
const STAMP = join(root, "dist/.built-from");
const FILES = [
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "tsconfig.build.json",
  "infra/copy-scripts.mjs",
  "infra/bundle.mjs",
  "infra/console.mjs",
];
const FOLDERS = ["cli", "console", "gateway", "worker", "shared", "test/bench"];
const PRODUCTS = [
  "dist/cli/main.js",
  "dist/bundled/gateway/main.js",
  "dist/worker/supervisor.js",
  "dist/bundled/worker/main.js",
  "dist/console/index.html",
];

/**
 * @param {string} logFolder
 * @throws {Refusal} if the sources do not compile
 */
export async function build(logFolder) {
  const sources = fingerprint();
  const isCurrent = existsSync(STAMP) && readFileSync(STAMP, "utf8") === sources;
  if (isCurrent && PRODUCTS.every((file) => existsSync(join(root, file)))) return;
  // A build that fails leaves some of its files in dist/, which then matches no sources at all.
  rmSync(STAMP, { force: true });
  const log = join(logFolder, "build.log");
  const { code, output } = await step("Building", () => npm(["run", "build"], log));
  if (code !== 0) throw new Refusal(`The build failed (all of its output: ${log}):\n${lastLines(output, 12)}`);
  writeFileSync(STAMP, sources);
}

/** A hash of the names and contents of all sources. */
function fingerprint() {
  const names = [...FILES];
  for (const folder of FOLDERS) {
    if (!existsSync(join(root, folder))) continue;
    for (const name of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })) {
      if (/\.(tsx?|lua|css|html)$/.test(name) && !name.endsWith(".test.ts")) names.push(`${folder}/${name}`);
    }
  }
  const hash = createHash("sha256");
  for (const name of names.sort()) {
    hash.update(`${name}\0`);
    hash.update(readFileSync(join(root, name)));
    hash.update("\0");
  }
  return hash.digest("hex");
}
