import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { firstCommands } from "../../infra/fleet/banner.mjs";
import { startFleet, type Fleet } from "../support/fleet/fleet.js";

const run = promisify(execFile);

const models = ["accumulate", "simple", "tale-gpt"];

describe("what `npm start` tells a newcomer to paste", () => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startFleet({ models });
    await fleet.whenServing();
  });
  afterAll(() => fleet.dispose());

  it("tells a tale, remembers a sum, shows the fleet", async () => {
    const [tale = "", sum = "", shown = ""] = await Promise.all(
      firstCommands(fleet.urls[0] ?? "", models).map(async ({ commands }) => {
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
