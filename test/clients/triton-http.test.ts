import { execFile, execFileSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startFleet, type Fleet } from "../setup/fleet.js";
import { root } from "../setup/root.js";

const path = process.env["TRITONCLIENT"] ?? "";
const pythons = ["/usr/bin/python3", "python3"];

/** A Python that can import the client; TRITONCLIENT may name the folder it lies in. */
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
    let fleet: Fleet;
    beforeAll(async () => {
      fleet = await startFleet({ gateways: 1, workers: 2, models: ["simple", "accumulate", "chain"] });
      await fleet.whenServing();
    });
    afterAll(() => fleet.dispose());

    it("runs infer, metadata and sequences, and reads refusals", async () => {
      const [url = ""] = fleet.urls;
      const script = join(root, "test/clients/triton_http.py");
      const { stdout } = await promisify(execFile)(python ?? "", [script, new URL(url).host]);
      expect(stdout).toBe("OK\n");
    });
  },
);
