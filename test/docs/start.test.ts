import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { identify } from "../../infra/setup/process-identity.mjs";
import type { RunningProcess } from "../support/brokers/process.js";
import { makeRepository } from "../support/fleet/repository.js";
import { root } from "../support/fleet/root.js";
import { bannerOf, npmStart, textOf } from "../support/fleet/npm-start.js";

function isAlive(pid: number): boolean {
  return identify(pid) !== undefined;
}

describe("`npm start`", () => {
  let folder = "";
  let start: RunningProcess | undefined;
  let children: readonly number[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "baton-start-"));
  });
  afterEach(async () => {
    if (start?.alive === true) await start.terminate();
    for (const pid of children.filter(isAlive)) process.kill(-pid, "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });

  const started = async (repository: string, env?: Readonly<Record<string, string>>): Promise<RunningProcess> =>
    (start = await npmStart(folder, repository, env));

  /** Starts a fleet of one worker, and waits for the whole banner. */
  async function startSimple(env?: Readonly<Record<string, string>>): Promise<RunningProcess> {
    const process = await started(makeRepository(join(folder, "models"), ["simple"]), env);
    await bannerOf(process);
    return process;
  }

  /** Notes the start's children, and removes the folder. @returns the process id of the start */
  function removeFolder(): number {
    const home = join(folder, "home");
    const pidIn = (file: string) => (JSON.parse(readFileSync(join(home, file), "utf8")) as { pid: number }).pid;
    children = readdirSync(join(home, "run")).map((name) => pidIn(`run/${name}`));
    expect(children).toHaveLength(5); // Redis, NATS, the gateway, the jobs process, a worker
    const own = pidIn("start.lock");
    rmSync(home, { recursive: true, maxRetries: 5 }); // NATS may write meanwhile
    return own;
  }

  async function refusal(repository: string, env?: Readonly<Record<string, string>>, status = 1): Promise<string> {
    const process = await started(repository, env);
    expect((await process.exited).code).toBe(status);
    return textOf(process);
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
    const process = await started(repository, { BATON_MODELS: "simple,broken-config,absent" });
    const said = await bannerOf(process);
    expect(said).toContain("Baton is up");
    expect(said).toMatch(/^ {2}models {3}simple$/m);
    expect(said).toMatch(/^ {2}broken-config is not served: .*no_such_field/m);
    expect(said).toMatch(/^ {2}absent is not served: no repository has this model$/m);
    process.signalGroup("SIGINT"); // a terminal sends the same at Ctrl-C
    await process.waitForLine("the end", ({ text }) => text.startsWith("Stopped."));
  }, 150_000);

  it("has nothing to warn of when it serves the demo models", async () => {
    const process = await started(join(root, "infra/models"), { BATON_WORKERS: "2" });
    await bannerOf(process);
    const said = process.lines.map(({ text }) => text);
    expect(said.filter((text) => /^(gateway|jobs|worker-\d|redis|nats): |npm warn.* project /i.test(text))).toEqual([]);
  }, 150_000);

  it("warns of a model's configuration once, and not for each worker", async () => {
    const tutorial = readFileSync(join(root, "infra/tutorial/config.pbtxt"), "utf8");
    const models = makeRepository(join(folder, "models"), ["my_lstm_model"], { my_lstm_model: tutorial });
    const process = await started(models, { BATON_WORKERS: "2" });
    await bannerOf(process);
    const warned = process.lines.filter(({ text }) => text.includes("is not taken as it is written"));
    expect(warned).toHaveLength(1);
  }, 150_000);

  it("names a misspelt setting once for the whole fleet, or refuses it where settings are strict", async () => {
    const misspelt = { BATON_QUEUE_ITEMS: "200" };
    const said = "no process of Baton reads BATON_QUEUE_ITEMS (did you mean BATON_QUEUE_LIMIT?)";
    const { lines } = await startSimple(misspelt);
    expect(lines.map(({ text }) => text).filter((text) => text.includes("BATON_QUEUE"))).toEqual([said]);
    await start?.terminate();
    const strict = { ...misspelt, BATON_STRICT_SETTINGS: "true" };
    expect(await refusal(join(folder, "models"), strict, 78)).toContain(`settings: ${said}`);
  }, 150_000);

  it("ends its children after its folder was removed, and starts again", async () => {
    const first = await startSimple();
    removeFolder();
    first.signalGroup("SIGINT");
    await first.waitForLine("the end", ({ text }) => text.startsWith("Stopped."));
    await first.exited;
    expect(children.filter(isAlive)).toEqual([]);
    const second = await startSimple();
    second.signalGroup("SIGINT");
    await second.exited;
  }, 150_000);

  it("has its guard end its children when it is killed after its folder was removed", async () => {
    const first = await startSimple();
    process.kill(removeFolder(), "SIGKILL");
    await first.exited;
    await expect.poll(() => children.filter(isAlive)).toEqual([]);
    const second = await startSimple();
    second.signalGroup("SIGINT");
    await second.exited;
  }, 150_000);

  it("refuses a folder without models, or without any of those that are wanted", async () => {
    mkdirSync(join(folder, "empty"));
    expect(await refusal(join(folder, "empty"))).toContain("There is no model in");
    expect(await refusal(join(folder, "absent"))).toContain("cannot be read (ENOENT)");
    const said = await refusal(makeRepository(join(folder, "models"), ["simple"]), { BATON_MODELS: "other" });
    expect(said).toContain("None of other (BATON_MODELS) is in");
  }, 150_000);

  it("shows the last words of a worker whose settings are wrong", async () => {
    const models = makeRepository(join(folder, "models"), ["simple"]);
    const said = await refusal(models, { BATON_INTRA_OP_THREADS: "many" }, 78);
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
