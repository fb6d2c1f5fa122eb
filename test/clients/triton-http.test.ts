import { execFile, execFileSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { root } from "../support/fleet/root.js";

const path = process.env["TRITONCLIENT"] ?? "";
const pythons = ["/usr/bin/python3", "python3"];

/**
 * Finds a Python that can import the client. TRITONCLIENT may name the folder in which the client
 * lies.
 */
function pythonWithClient(): string | undefined {
  return pythons.find((python) => {
    try {
      execFileSync(python, ["-c", "import tritonclient.http"], {
        env: { ...process.env, PYTHONPATH: path },
        stdio: "ignore",
      });
      return true;
    } catch {
      return false;
    }
  });
}

const python = pythonWithClient();

describe.skipIf(python === undefined)(
  "the Triton HTTP client for Python (skipped: no python3 with tritonclient.http)",
  () => {
    const served = useFleet({ gateways: 1, workers: 2, models: ["simple", "accumulate", "chain"] });

    it("runs infer, metadata and sequences, and reads refusals", async () => {
      const { url } = served;
      const script = join(root, "test/clients/triton_http.py");
      const { stdout } = await promisify(execFile)(python ?? "", [script, new URL(url).host]);
      expect(stdout).toBe("OK\n");
    });
  },
);
