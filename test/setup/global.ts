/**
 * Tests run what users run: the built files. Builds them once before the first test, unless nothing has changed since the last build.
 * A build that fails fails the tests that start a fleet, not the others.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./root.js";

const inputs = ["gateway", "worker", "shared", "test", "package.json", "tsconfig.json", "tsconfig.build.json"];
const stamp = join(root, "dist", ".built");

export default function setup(): void {
  if (existsSync(stamp) && newest() < statSync(stamp).mtimeMs) return;
  const startedAt = new Date();
  try {
    execFileSync("npm", ["run", "--silent", "build"], { cwd: root, stdio: "inherit" });
    writeFileSync(stamp, startedAt.toISOString());
  } catch (error) {
    process.env["BATON_BUILD_FAILED"] = error instanceof Error ? error.message : String(error);
  }
}

function newest(): number {
  let latest = 0;
  for (const input of inputs) {
    const path = join(root, input);
    const files = statSync(path).isDirectory() ? readdirSync(path, { recursive: true, encoding: "utf8" }) : [""];
    for (const file of files) {
      if (file === "" || /\.(ts|lua|mjs)$/.test(file)) latest = Math.max(latest, statSync(join(path, file)).mtimeMs);
    }
  }
  return latest;
}
