/** The demo of a published recurrent model in docs/models.md runs as printed. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startFleet, type Fleet } from "../support/fleet/fleet.js";
import { root } from "../support/fleet/root.js";
import { pages } from "./pages.js";

const run = promisify(execFile);
const commands = pages
  .flatMap(({ text }) => text.split("\n"))
  .filter((line) => line.startsWith("node infra/demos/silero-vad/"));

describe("the documents' demo with audio", () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-demo-"));
  let fleet: Fleet;
  beforeAll(async () => {
    const place = commands[0]?.replace(".baton/models", folder) ?? "";
    await run("sh", ["-ec", place], { cwd: root });
    fleet = await startFleet({ workers: 2, models: ["silero-vad"], repository: folder });
    await fleet.whenServing();
  });
  afterAll(async () => {
    await fleet.dispose();
    rmSync(folder, { recursive: true });
  });

  it("hears where a voice speaks, and where it pauses", async () => {
    expect(commands).toHaveLength(2);
    const env = { ...process.env, BATON_URL: fleet.urls[0] };
    const { stdout } = await run("sh", ["-ec", commands[1] ?? ""], { cwd: root, env });
    const spans = [...stdout.matchAll(/^speech from ([\d.]+) s to ([\d.]+) s$/gm)];
    expect(spans.map(([, from, to]) => [Number(from), Number(to)])).toEqual([
      [0, expect.closeTo(1.1, 0)],
      [expect.closeTo(2, 0), expect.closeTo(3.1, 0)],
      [expect.closeTo(4, 0), expect.closeTo(5.1, 0)],
    ]);
  });
});
