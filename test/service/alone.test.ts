/**
 * The operations of the service work on real brokers and a real worker, in a process that loads
 * neither Hono nor `gateway/http`. The jobs process, which runs due jobs, schedules and lines of
 * batches, loads neither of the two, either.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunningProcess } from "../support/brokers/process.js";
import { root } from "../support/fleet/root.js";
import { useFleet } from "../support/fleet/use-fleet.js";

/** V8 writes here, at the end of a process, which files the process has loaded. */
const folder = mkdtempSync(join(tmpdir(), "baton-loaded-"));
afterAll(() => rmSync(folder, { recursive: true }));
const loadedOf = (name: string) => ({ NODE_V8_COVERAGE: join(folder, name) });
const program = (file: string) => join(root, "dist", file);

const served = useFleet({
  gateways: 0,
  jobs: 1,
  models: ["simple", "tale-gpt"],
  direct: true,
  jobsEnv: loadedOf("jobs"),
  // The bundle would hide the files that it is made of.
  programs: (member) => (member.startsWith("jobs") ? program("gateway/doors/jobs/main.js") : undefined),
});

const TRANSPORT = /\/dist\/gateway\/(?:http|api|doors\/(?!jobs\/))|\/node_modules\/(?:hono|@hono)\//;

function filesLoaded(name: string): string[] {
  return readdirSync(join(folder, name)).flatMap((file) => {
    const { result } = JSON.parse(readFileSync(join(folder, name, file), "utf8")) as Coverage;
    return result.map(({ url }) => url);
  });
}

interface Coverage {
  readonly result: readonly { readonly url: string }[];
}

describe("without a transport", () => {
  let asking: RunningProcess;
  beforeAll(() => {
    asking = served.fleet.launch("test/service/main.js", loadedOf("service"));
  });
  const saw = async (operation: string) => (await asking.waitForMessage(operation)).fields["saw"];

  it("an inference has its outcome", async () => expect(await saw("inference")).toBe(6));

  it("a generation's records reach a reader, in order and whole", async () =>
    expect(await saw("stream")).toEqual({ isInOrder: true, isOver: true, isWhole: true }));

  it("a generation is cancelled", async () =>
    expect(await saw("cancel")).toEqual({ reason: "cancelled", state: "cancelled" }));

  it("a job has its result, at once and at its time", async () =>
    expect([await saw("job"), await saw("dueJob")]).toEqual([8, 10]));

  it("a schedule makes a job, which has its result", async () => expect(await saw("schedule")).toBe(12));

  it("the lines of a batch are answered", async () => expect(await saw("batch")).toEqual([14, 16]));

  it.each([
    ["service", "gateway/service/requests.js"],
    ["jobs", "gateway/formats/own-turn.js"],
  ])("the process has loaded no transport: %s", async (name, expected) => {
    if (name === "service") expect(await asking.exited).toEqual({ code: 0, signal: null });
    else await served.fleet.jobs[0]?.terminate();
    const loaded = filesLoaded(name);
    expect(loaded).toContain(pathToFileURL(program(expected)).href);
    expect(loaded.filter((url) => TRANSPORT.test(url))).toEqual([]);
  });
});
