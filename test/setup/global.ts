/**
 * Tests run what users run: the built files, built as `npm start` and `npm test` build them. So a
 * test that runs `npm start` finds nothing to build, and no test's files are written anew under it.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "./root.js";

/** A build that fails fails the tests that start a fleet, not the others. */
export default function setup(): void {
  const logs = mkdtempSync(join(tmpdir(), "baton-build-"));
  const program = `import { build } from "./infra/setup/build.mjs"; await build(${JSON.stringify(logs)});`;
  try {
    execFileSync(process.execPath, ["--input-type=module", "-e", program], { cwd: root, stdio: "inherit" });
  } catch (error) {
    process.env["BATON_BUILD_FAILED"] = error instanceof Error ? error.message : String(error);
  }
}
