/** Where the lines go: files that are renamed, pipes and disks that take nothing, or nowhere. */
import { execFileSync } from "node:child_process";
import { closeSync, constants, existsSync, openSync, readFileSync, readdirSync, readSync, renameSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { simple } from "../edition/ask.js";
import { startFleet, type Fleet, type FleetPlan } from "../support/fleet/fleet.js";
import { root } from "../support/fleet/root.js";
import { until } from "../support/until.js";
import { lineOf, linesOf, linesWith, logFolder, type Line } from "./lines.js";

const folder = logFolder();

/** Runs a test on a fleet whose gateways log there. */
async function withLog(place: string, test: (fleet: Fleet, url: string) => Promise<void>, more?: Partial<FleetPlan>) {
  const fleet = await startFleet({ models: ["simple"], direct: true, env: { BATON_ACCESS_LOG: place }, ...more });
  try {
    await fleet.whenServing();
    const [url = ""] = fleet.urls;
    await test(fleet, url);
  } finally {
    await fleet.dispose();
  }
}

const answered = async (url: string, id: string) => {
  expect(await simple(url, 21, {}, { "x-request-id": id })).toMatchObject({ status: 200, output: 42 });
};

it("a file that was renamed is opened anew at SIGHUP", async () => {
  const path = join(folder, "rotated.log");
  await withLog(path, async ({ gateways: [gateway] }, url) => {
    await answered(url, "before");
    await lineOf(path, "before");
    renameSync(path, `${path}.1`);
    await answered(url, "renamed");
    expect(await lineOf(`${path}.1`, "renamed")).toMatchObject({ status: 200 });
    process.kill(gateway?.member.process.pid ?? 0, "SIGHUP");
    await until(() => existsSync(path));
    await answered(url, "after");
    expect(await lineOf(path, "after")).toMatchObject({ status: 200 });
    expect(linesOf(path).some(({ id }) => id === "renamed")).toBe(false);
    // The last line is in the file when the gateway has stopped.
    await answered(url, "last");
    await gateway?.member.terminate();
    expect(linesOf(path).some(({ id }) => id === "last")).toBe(true);
  });
});

describe("a gateway does not start", () => {
  it.each([
    ["a folder", "."],
    ["no folder", "none/access.log"],
    ["a pipe without a reader", "pipe"],
  ])("with a log in %s", async (_, name) => {
    if (name === "pipe") execFileSync("mkfifo", [join(folder, name)]);
    const fleet = await startFleet({ models: ["simple"], gateways: 0, workers: 0, direct: true });
    try {
      const gateway = fleet.launch("gateway/main.js", { BATON_ACCESS_LOG: join(folder, name), BATON_HTTP_PORT: "0" });
      expect(await gateway.exited).toMatchObject({ code: 78 });
      const said = gateway.lines.filter(({ fields }) => fields["level"] === 60);
      expect(said).toHaveLength(1);
      expect(said[0]?.fields["error"]).toMatch(/^BATON_ACCESS_LOG names a file that cannot be opened \(.*\)\.$/);
    } finally {
      await fleet.dispose();
    }
  });
});

/** Requests of a flood. A line of theirs has more than 1 KiB, and 4 MiB of lines may wait. */
const ROUNDS = 80;
const AT_ONCE = 64;

/** Asks until the gateway has dropped lines, with long agents so that this takes few requests. */
async function flood(url: string): Promise<void> {
  const headers = { "user-agent": "é-".repeat(2_000) };
  const one = async () => (await fetch(`${url}/v2/${"é-".repeat(200)}`, { headers })).arrayBuffer();
  for (let i = 0; i < ROUNDS; i++) await Promise.all(Array.from({ length: AT_ONCE }, one));
}

it.each([
  ["a pipe without reading", "blocked"],
  ["a full disk", "/dev/full"],
])("%s slows no request: lines are dropped, and later lines come", { timeout: 120_000 }, async (_, name) => {
  const path = name.startsWith("/") ? name : join(folder, name);
  let reader: number | undefined;
  if (path !== name) {
    execFileSync("mkfifo", [path]);
    reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  }
  try {
    await withLog(path, async ({ gateways: [gateway] }, url) => {
      await flood(url);
      await answered(url, "beside");
      const said = (begin: string) =>
        gateway?.member.process.waitForLine(begin, ({ fields }) => String(fields["msg"]).startsWith(begin));
      await said("access log cannot be written");
      if (reader === undefined) return;
      // The reader reads at last: what has waited is whole lines, at most 4 MiB of them.
      const text = readAll(reader, () => answered(url, "late"));
      const got = (await text)
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Line);
      expect(got.at(-1)).toMatchObject({ id: "late" });
      const dropped = Number((await said("access log is written again"))?.fields["dropped"]);
      expect(dropped).toBeGreaterThan(0);
      const counted = got.filter(({ path: asked }) => !String(asked).endsWith("/ready"));
      // Beside the flood, the test has asked twice.
      expect(counted.length + dropped).toBe(ROUNDS * AT_ONCE + 2);
    });
  } finally {
    if (reader !== undefined) closeSync(reader);
  }
});

/** Reads a pipe until its text ends with the line of the request that `ask` makes. */
async function readAll(reader: number, ask: () => Promise<void>): Promise<string> {
  const buffer = Buffer.alloc(65_536);
  const read = (text: string): string => {
    try {
      for (;;) text += buffer.toString("latin1", 0, readSync(reader, buffer));
    } catch {
      return text; // the pipe is empty
    }
  };
  let text = "";
  let before = -1;
  await until(() => {
    before = text.length;
    text = read(text);
    return text.length > 65_536 && text.length === before;
  });
  await ask();
  await until(() => (text = read(text)).includes('"id":"late"'));
  return text;
}

it("standard output has whole lines beside the gateway's own", async () => {
  await withLog("stdout", async ({ gateways: [gateway] }, url) => {
    await answered(url, "out");
    const line = await gateway?.member.process.waitForLine("the line", ({ fields }) => fields["id"] === "out");
    expect(line?.fields).toMatchObject({ status: 200, ended: "sent" });
  });
});

/** The modules that a gateway has loaded, by V8's own account. */
async function modulesOf(place: string): Promise<string[]> {
  const coverage = join(folder, `coverage-${place}`);
  const plan = {
    workers: 0,
    models: [],
    env: { BATON_ACCESS_LOG: place, NODE_V8_COVERAGE: coverage },
    // The modules are one file each, and not a bundle.
    programs: () => join(root, "dist/gateway/main.js"),
  };
  await withLog(place, async ({ gateways: [gateway] }) => void (await gateway?.member.terminate()), plan);
  const reports = readdirSync(coverage).map((name) => readFileSync(join(coverage, name), "utf8"));
  return reports.flatMap((text) => (JSON.parse(text) as { result: { url: string }[] }).result.map(({ url }) => url));
}

it("without a log no module of it is loaded", async () => {
  const count = (modules: readonly string[]) => modules.filter((url) => url.includes("/access-log/")).length;
  expect(count(await modulesOf("stdout"))).toBeGreaterThan(5);
  expect(count(await modulesOf("off"))).toBe(0);
});

it("outcomes of a worker without timings are answered, and their lines say less", async () => {
  const path = join(folder, "untimed.log");
  await withLog(
    path,
    async (_, url) => {
      await answered(url, "untimed");
      const untimed = { queue_ms: null, run_ms: null, worker: null, model: "simple", status: 200 };
      expect((await linesWith(path, ({ id }) => id === "untimed"))[0]).toMatchObject(untimed);
    },
    { workerEnv: { BATON_TIMINGS: "false" } },
  );
});
