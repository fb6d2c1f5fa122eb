/**
 * All processes of a deployment have the same number of buckets; a process with another number says
 * so.
 */
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { add } from "./ask.js";
import { buckets } from "./settings.js";

describe("a deployment that was started with 16 buckets", () => {
  const served = useFleet({ models: ["accumulate"], env: buckets(16), direct: true });

  it.each([
    ["bundled/gateway/main.js", { ...buckets(4), BATON_HTTP_PORT: "0" }],
    ["worker/supervisor.js", buckets(4)],
  ])("refuses %s with four, for good and in words", async (entry, env) => {
    const process = served.fleet.launch(entry, env);
    const { fields } = await process.waitForLine("cannot start", ({ fields }) => fields["level"] === 60);
    expect(fields["error"]).toMatch(/BATON_BUCKETS is 4 here, but 16 in the rest of this deployment/);
    expect(await process.exited).toEqual({ code: 78, signal: null });
  });

  it("serves its sequences meanwhile, whatever bucket they are in", async () => {
    const sequences = Array.from({ length: 20 }, (_, i) => i + 1);
    const start = (sequence: number) => add(served.url, { sequence, value: 1, start: true });
    expect((await Promise.all(sequences.map(start))).map(({ output }) => output)).toEqual(sequences.map(() => 1));
    const next = (sequence: number) => add(served.url, { sequence, value: sequence });
    expect((await Promise.all(sequences.map(next))).map(({ output }) => output)).toEqual(sequences.map((n) => 1 + n));
  });
});

describe("a deployment that was started without a number", () => {
  const served = useFleet({ models: ["accumulate"], direct: true });

  it("has 16 buckets", async () => {
    const process = served.fleet.launch("bundled/gateway/main.js", { ...buckets(4), BATON_HTTP_PORT: "0" });
    const { fields } = await process.waitForLine("cannot start", ({ fields }) => fields["level"] === 60);
    expect(fields["error"]).toMatch(/BATON_BUCKETS is 4 here, but 16 in the rest of this deployment/);
  });
});
