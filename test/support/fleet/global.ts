/**
 * Makes the build and the tutorial's model before any test, as `npm start` and `npm test` make
 * them. So a test that runs `npm start` finds nothing to make, and no test's files change while the
 * test runs.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "./root.js";

/** If the build fails, only the tests that start a fleet fail. */
export default function setup(): void {
  const logs = mkdtempSync(join(tmpdir(), "baton-build-"));
  const program = `
    import { build } from "./infra/setup/build.mjs";
    import { makeTutorialModel } from "./infra/tutorial/make.mjs";
    makeTutorialModel("infra/models/my_lstm_model");
    await build(${JSON.stringify(logs)});`;
  try {
    execFileSync(process.execPath, ["--input-type=module", "-e", program], { cwd: root, stdio: "inherit" });
    rmSync(logs, { recursive: true });
  } catch (error) {
    process.env["BATON_BUILD_FAILED"] = error instanceof Error ? error.message : String(error);
  }
}
