import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { freePort } from "../support/fleet/port.js";
import { RunningProcess } from "../support/fleet/process.js";
import { makeRepository } from "../support/fleet/repository.js";
import { root } from "../support/fleet/root.js";

describe("`npm start`", () => {
  let folder = "";
  let start: RunningProcess | undefined;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "baton-start-"));
  });
  afterEach(async () => {
    if (start?.alive === true) await start.terminate();
    rmSync(folder, { recursive: true, force: true });
  });

  async function npmStart(repository: string, env: Readonly<Record<string, string>> = {}): Promise<RunningProcess> {
    const ports = [await freePort(), await freePort(), await freePort()].map(String);
    const [http = "", redis = "", nats = ""] = ports;
    start = new RunningProcess({
      name: "npm start",
      command: "npm",
      args: ["start"],
      cwd: root,
      env: {
        BATON_HOME: join(folder, "home"),
        BATON_MODEL_REPOSITORY: repository,
        BATON_HTTP_PORT: http,
        BATON_REDIS_PORT: redis,
        BATON_NATS_PORT: nats,
        BATON_WORKERS: "1",
        ...env,
      },
      logFile: join(folder, "start.log"),
    });
    return start;
  }

  async function refusal(repository: string, env?: Readonly<Record<string, string>>): Promise<string> {
    const process = await npmStart(repository, env);
    expect((await process.exited).code).toBe(1);
    return process.lines.map(({ text }) => text).join("\n");
  }

  it("says why no model loads, and stops", async () => {
    const said = await refusal(makeRepository(join(folder, "models"), ["broken-config", "broken-onnx"]));
    expect(said).toContain(`None of the models in ${join(folder, "models")} (BATON_MODEL_REPOSITORY) can be served:`);
    expect(said).toMatch(/^ {2}broken-config: .*no_such_field/m);
    expect(said).toMatch(/^ {2}broken-onnx: .*\S/m);
    expect(said).toContain("unset BATON_MODEL_REPOSITORY for the demo models");
  }, 150_000);

  it("serves the models that load, and says why the others do not", async () => {
    const repository = makeRepository(join(folder, "models"), ["simple", "broken-config"]);
    const process = await npmStart(repository, { BATON_MODELS: "simple,broken-config,absent" });
    await process.waitForLine("the banner", ({ text }) => text.includes("Baton is up"));
    await process.waitForLine("its end", ({ text }) => text.includes("Ctrl-C drains"));
    const said = process.lines.map(({ text }) => text).join("\n");
    expect(said).toMatch(/^ {2}models {3}simple$/m);
    expect(said).toMatch(/^ {2}broken-config is not served: .*no_such_field/m);
    expect(said).toMatch(/^ {2}absent is not served: no repository has this model$/m);
    process.signalGroup("SIGINT"); // what Ctrl-C in a terminal sends
    await process.waitForLine("the end", ({ text }) => text.startsWith("Stopped."));
  }, 150_000);

  it("refuses a folder without models, or without any of those that are wanted", async () => {
    mkdirSync(join(folder, "empty"));
    expect(await refusal(join(folder, "empty"))).toContain("There is no model in");
    expect(await refusal(join(folder, "absent"))).toContain("cannot be read (ENOENT)");
    const said = await refusal(makeRepository(join(folder, "models"), ["simple"]), { BATON_MODELS: "other" });
    expect(said).toContain("None of other (BATON_MODELS) is in");
  }, 150_000);

  it("shows the last words of a worker whose settings are wrong", async () => {
    const said = await refusal(makeRepository(join(folder, "models"), ["simple"]), { BATON_INTRA_OP_THREADS: "many" });
    expect(said).toMatch(/worker-1 does not stay up \(exit status 78\).*Its last words:/);
    expect(said).toContain("BATON_INTRA_OP_THREADS");
  }, 150_000);

  it("shows the last words of a worker whose supervised process dies at once", async () => {
    const die = join(folder, "die.mjs");
    writeFileSync(die, `if (process.argv[1]?.endsWith("worker/main.js")) throw new Error("said before it died");`);
    const said = await refusal(makeRepository(join(folder, "models"), ["simple"]), { NODE_OPTIONS: `--import=${die}` });
    expect(said).toMatch(/worker-1 does not stay up \(exit status 1 3 times in a row\).*Its last words:/);
    expect(said).toContain("said before it died");
  }, 150_000);
});
