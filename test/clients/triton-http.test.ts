import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { pythonWithClient, runPython } from "./python.js";

describe.skipIf(pythonWithClient === undefined)(
  "the Triton HTTP client for Python (skipped: no python3 with tritonclient.http)",
  () => {
    const served = useFleet({ workers: 2, models: ["simple", "accumulate", "chain"] });

    it("runs infer, metadata and sequences, and reads refusals", async () => {
      expect(await runPython("triton_http.py", new URL(served.url).host)).toBe("OK\n");
    });
  },
);
