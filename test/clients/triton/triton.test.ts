/**
 * Triton's own clients and tests, unmodified, against a fleet in a network of its own. They are no
 * part of this repository: TRITON_SOURCES names a folder that `build.sh` has prepared.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { suites } from "./suites.js";

const sources = process.env["TRITON_SOURCES"];
const folder = mkdtempSync(join(tmpdir(), "baton-triton-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe.skipIf(sources === undefined)("Triton's clients and tests (skipped: TRITON_SOURCES is not set)", () => {
  it.each(suites)("$name", { timeout: 3_600_000 }, async ({ name, runs, ran, fails, chance }) => {
    const script = join(folder, `${name.replaceAll(/\W/g, "-")}.sh`);
    writeFileSync(script, runs);
    const suite = join(import.meta.dirname, "suite.sh");
    const { stdout } = await promisify(execFile)(
      "unshare",
      ["--net", "--mount", "bash", suite, sources ?? "", script],
      { maxBuffer: 64 * 1024 * 1024 },
    );
    const lines = stdout.split("\n");
    const failed = lines.flatMap((line) => /^not ok ([^:]+)/.exec(line)?.[1]?.trim() ?? []);
    // How requests share batches is chance without Triton's hook in the server.
    const surely = failed.filter((one) => !(one in (chance?.fails ?? {})));
    const said = lines.flatMap((line) => /^said (.*)/.exec(line)?.[1] ?? []);
    const odd = said.filter((text) => chance?.says.test(text) === false);
    expect({ failed: [...new Set(surely)].sort(), odd }).toEqual({ failed: Object.keys(fails).sort(), odd: [] });
    const cases = lines.flatMap((line) => /^Ran (\d+) test/.exec(line)?.[1] ?? []).map(Number);
    expect(cases.reduce((sum, one) => sum + one, 0)).toBe(ran);
  });
});
