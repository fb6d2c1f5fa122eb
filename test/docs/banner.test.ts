import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startFleet, type Fleet } from "../setup/fleet.js";
import { root } from "../setup/root.js";

const run = promisify(execFile);

/** The banner is a plain module of the start-up, which runs before anything is built. */
async function firstCommands(...given: readonly [url: string | undefined, models: readonly string[]]) {
  const program = `import { firstCommands } from "./infra/fleet/banner.mjs";
    console.log(JSON.stringify(firstCommands(...${JSON.stringify(given)})));`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program], { cwd: root });
  return JSON.parse(stdout) as { commands: string[] }[];
}

const models = ["accumulate", "simple", "tale-gpt"];

describe("what `npm start` tells a newcomer to paste", () => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startFleet({ gateways: 1, workers: 1, models });
    await fleet.whenServing();
  });
  afterAll(() => fleet.dispose());

  it("tells a tale, remembers a sum, shows the fleet", async () => {
    const [tale = "", sum = "", shown = ""] = await Promise.all(
      (await firstCommands(fleet.urls[0], models)).map(async ({ commands }) => {
        const { stdout } = await run("sh", ["-ec", commands.join("\n")]);
        return stdout;
      }),
    );
    expect(tale).toContain("data: [DONE]");
    expect(tale.split("\n").filter((line) => line.startsWith("data: {")).length).toBeGreaterThan(20);
    expect(sum).toContain('"data":[42]');
    expect(JSON.parse(shown)).toMatchObject({ workers: [{ models: models.map((name) => ({ name })) }] });
  });
});
