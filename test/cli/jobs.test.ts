import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { until } from "../support/until.js";
import { baton, startBaton, type Surroundings } from "./baton.js";

const served = useFleet({ jobs: 1, models: ["simple", "tale-gpt"] });
const ask = (args: readonly string[], more: Surroundings = {}) =>
  baton(["jobs", ...args], { url: served.url, ...more });

const row = Array.from({ length: 16 }, (_, i) => i);
const inputs = ["INPUT0", "INPUT1"].map((name) => ({ name, datatype: "INT32", shape: [1, 16], data: row }));
const sum = JSON.stringify({ inputs });
const tale = JSON.stringify({
  temperature: 0,
  text_input: "Write a short story about a cat who discovers a secret portal.",
});

/** @returns the job's id */
async function submit(args: readonly string[], stdin: string): Promise<string> {
  const { code, stdout, stderr } = await ask(["submit", ...args], { stdin });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/^job_\S+\n$/);
  return stdout.trim();
}

async function stateOf(id: string): Promise<unknown> {
  const { stdout } = await ask(["show", id, "--json"]);
  return (JSON.parse(stdout) as { state: unknown }).state;
}

describe("jobs submit", () => {
  it("waits for a job that is delayed, too", async () => {
    // The command also has to start and to look while the job waits.
    const terms = ["--delay", "2s", "--attempts", "2", "--wait"];
    const { code, stdout, stderr } = await ask(["submit", "simple", "--infer", "-", ...terms], { stdin: sum });
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/^attempts_made +1$/m);
    expect(stderr).toMatch(/baton: scheduled for 20\S+Z\n/);
  });

  it("waits for the result where it is told to", async () => {
    const args = ["submit", "simple", "--infer", "-", "--wait"];
    const { code, stdout, stderr } = await ask(args, { stdin: sum });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^state +completed$/m);
    expect(stdout).toMatch(/^OUTPUT0 +INT32 +\[1,16\] +0 2 4 6 8 /m);
    expect(stderr).toMatch(/^baton: job job_\S+\n/);
    expect(stderr).toMatch(/baton: completed\n$/);
    const { stdout: json } = await ask([...args, "--json"], { stdin: sum });
    expect(JSON.parse(json)).toMatchObject({ object: "job", type: "infer", model: "simple", state: "completed" });
  });

  it("submits once under one key", async () => {
    const args = ["simple", "--infer", "-", "--idempotency-key", "once"];
    expect(await submit(args, sum)).toBe(await submit(args, sum));
    const other = await ask(["submit", ...args, "--priority", "2"], { stdin: sum });
    expect(other).toMatchObject({ code: 4, stdout: "" });
    expect(other.stderr).toContain("(idempotency_mismatch)");
  });

  it("says what is wrong with a job", async () => {
    expect(await ask(["submit", "simple", "--infer", "-"], { stdin: "{" })).toMatchObject({ code: 2, stdout: "" });
    expect(await ask(["submit", "simple"])).toMatchObject({ code: 2, stdout: "" });
    expect(await ask(["submit", "simple", "--infer", "-"], { stdin: "{}" })).toMatchObject({ code: 4, stdout: "" });
    expect(await ask(["submit", "nothing", "--infer", "-"], { stdin: sum })).toMatchObject({ code: 3, stdout: "" });
  });
});

describe("jobs list", () => {
  it("lists those of a label, the newest first", async () => {
    const first = await submit(["simple", "--infer", "-", "--label", "suite=list", "--label", "n=1"], sum);
    const second = await submit(["simple", "--infer", "-", "--label", "suite=list", "--label", "n=2"], sum);
    const { code, stdout } = await ask(["list", "--label", "suite=list", "--model", "simple"]);
    expect(code).toBe(0);
    const lines = stdout.trim().split("\n");
    expect(lines[0]).toMatch(/^JOB +TYPE +MODEL +STATE/);
    expect(lines.slice(1).map((line) => line.split(/ +/)[0])).toEqual([second, first]);
    expect(lines[1]).toMatch(/suite=list n=2$/);
    const { stdout: json } = await ask(["list", "--label", "suite=list", "--label", "n=1", "--json"]);
    expect(JSON.parse(json)).toMatchObject({ object: "list", data: [{ id: first }] });
    expect(await ask(["list", "--state", "no-such-state"])).toMatchObject({ code: 4, stdout: "" });
  });
});

describe("jobs show, watch, cancel and retry", () => {
  it("show a text from the beginning to its end", async () => {
    const id = await submit(["tale-gpt", "--generate", "-"], tale);
    const { code, stdout } = await ask(["watch", id, "--json"]);
    expect(code).toBe(0);
    const views = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { id: string; state: string });
    expect(views.every((view) => view.id === id)).toBe(true);
    expect(views.at(-1)?.state).toBe("completed");
    expect((await ask(["show", id])).stdout).toMatch(/\bportal\b/);
  });

  it("leave the job alone at Ctrl-C", async () => {
    // Without a worker the job stays in its state.
    served.fleet.workers[0]?.freeze();
    const id = await submit(["tale-gpt", "--generate", "-"], tale);
    const running = startBaton(["jobs", "watch", id], { url: served.url });
    await until(() => running.printed() !== "");
    running.kill("SIGINT");
    expect(await running.ended).toMatchObject({ code: 130, stderr: "baton: interrupted\n" });
    expect(await stateOf(id)).not.toBe("cancelled");
    const cancelled = await ask(["cancel", id, "--json"]);
    expect(JSON.parse(cancelled.stdout)).toMatchObject({ id, state: "cancelled" });
    served.fleet.workers[0]?.thaw();
    const watched = await ask(["watch", id]);
    expect(watched.code).toBe(1);
    expect(watched.stdout).toMatch(/^cancelled\b.*\n$/);
    expect(watched.stderr).toContain(`job ${id} is cancelled`);
  });

  it("refuse what cannot be done", async () => {
    const id = await submit(["simple", "--infer", "-"], sum);
    expect(await ask(["watch", id])).toMatchObject({ code: 0 });
    for (const [verb, code] of [
      ["cancel", "already_ended"],
      ["retry", "job_not_retryable"],
    ] as const) {
      const refused = await ask([verb, id]);
      expect(refused).toMatchObject({ code: 4, stdout: "" });
      expect(refused.stderr).toContain(`(${code})`);
    }
    for (const verb of ["show", "watch", "cancel", "retry"]) {
      const unknown = await ask([verb, "job_nothing"]);
      expect(unknown).toMatchObject({ code: 3, stdout: "" });
      expect(unknown.stderr).toContain("(unknown_job)");
    }
  });
});
