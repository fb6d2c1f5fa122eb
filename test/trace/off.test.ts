/** A process without an address for traces loads nothing of OpenTelemetry. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { simple } from "../edition/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { TraceReceiver } from "../support/traces/receiver.js";

const receiver = await TraceReceiver.start();
const folder = mkdtempSync(join(tmpdir(), "baton-modules-"));
afterAll(async () => {
  await receiver.leave();
  rmSync(folder, { recursive: true, force: true });
});

/** Node then writes a list of all modules that a process has loaded, at its end. */
const listing = (name: string) => ({ NODE_V8_COVERAGE: join(folder, name) });

/** The modules of OpenTelemetry that processes have loaded. */
function loaded(name: string): number {
  const lists = readdirSync(join(folder, name)).map((file) => readFileSync(join(folder, name, file), "utf8"));
  expect(lists.length).toBeGreaterThan(0);
  return lists.reduce((sum, list) => sum + [...list.matchAll(/"url":"[^"]*@opentelemetry/g)].length, 0);
}

describe("a fleet", () => {
  const served = useFleet({ models: ["simple"], jobs: 1, direct: true, env: listing("off") });

  it("loads OpenTelemetry only where it has an address for traces", async () => {
    const { fleet, url } = served;
    const traced = await fleet.addWorker({ ...listing("on"), BATON_TRACE_URL: receiver.url });
    expect((await simple(url, 1)).status).toBe(200);
    const untraced = [...fleet.gateways.map(({ member }) => member), ...fleet.workers, ...fleet.jobs];
    const all = new Set([traced, ...untraced]);
    await Promise.all([...all].map((member) => member.terminate()));
    expect(loaded("off")).toBe(0);
    expect(loaded("on")).toBeGreaterThan(0);
  });
});
