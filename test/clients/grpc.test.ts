import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { pythonWithGrpc, runPython } from "./python.js";

describe.skipIf(pythonWithGrpc === undefined)("the gRPC library for Python (skipped: no python3 with grpc)", () => {
  const served = useFleet({ models: ["echo-int32", "accumulate"], grpc: true });

  it("runs calls, sequences, compression and deadlines, and reads refusals", async () => {
    const target = served.fleet.gateways[0]?.grpc ?? "";
    expect(await runPython("grpc_plain.py", target, pythonWithGrpc)).toBe("OK\n");
  });
});
