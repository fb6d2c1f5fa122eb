import { expect, it } from "vitest";
import { simpleBody } from "../jobs/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { baton, type Surroundings } from "./baton.js";

const served = useFleet({ jobs: 1, models: ["simple"], direct: true });
const ask = (args: readonly string[], more: Surroundings = {}) =>
  baton(["schedules", ...args], { url: served.url, ...more });
const stdin = JSON.stringify(simpleBody(4));

it("schedules are made, listed, shown, paused, resumed and removed", { timeout: 120_000 }, async () => {
  const infer = ["create", "simple", "--infer", "-"];
  const made = await ask([...infer, "--cron", "30 9 * * 1-5", "--timezone", "Europe/Berlin"], { stdin });
  expect(made).toMatchObject({ code: 0, stderr: "" });
  expect(made.stdout).toMatch(/^sched_\S+\n$/);
  const id = made.stdout.trim();

  const { stdout: json } = await ask([...infer, "--every", "1s", "--limit", "1", "--label", "a=b", "--json"], {
    stdin,
  });
  const other = JSON.parse(json) as { id: string; every: number; job: object };
  expect(other).toMatchObject({ every: 1_000, limit: 1, job: { infer: simpleBody(4), labels: { a: "b" } } });

  const lines = (await ask(["list"])).stdout.trim().split("\n");
  expect(lines[0]).toMatch(/^SCHEDULE +MODEL +STATE +TIMES +NEXT +RUNS$/);
  expect(lines.slice(1).map((line) => line.split(/ +/)[0])).toEqual([other.id, id]);
  expect(JSON.parse((await ask(["list", "--json"])).stdout)).toMatchObject({
    object: "list",
    data: [{ id: other.id }, { id }],
  });

  const shown = await ask(["show", id]);
  expect(shown.stdout).toMatch(/^cron +30 9 \* \* 1-5$/m);
  expect(shown.stdout).toMatch(/^next_runs +(?:\S+Z ?){5}$/m);
  expect((await ask(["pause", id])).stdout).toMatch(/^state +paused$/m);
  expect((await ask(["resume", id])).stdout).toMatch(/^state +active$/m);
  expect(await ask(["remove", id])).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(await ask(["show", id])).toMatchObject({ code: 3, stdout: "" });

  await expect
    .poll(async () => (JSON.parse((await ask(["show", other.id, "--json"])).stdout) as { state: string }).state)
    .toBe("ended");
  expect(await ask(["pause", other.id])).toMatchObject({ code: 4, stdout: "" });

  expect(await ask(["create", "simple", "--every", "5s"])).toMatchObject({ code: 2, stdout: "" });
  expect(await ask(infer, { stdin })).toMatchObject({ code: 2, stdout: "" });
  expect(await ask([...infer, "--every", "5s", "--cron", "* * * * *"], { stdin })).toMatchObject({
    code: 2,
    stdout: "",
  });
  const refused = await ask([...infer, "--cron", "* * * * * *"], { stdin });
  expect(refused).toMatchObject({ code: 4, stdout: "" });
  expect(refused.stderr).toContain("five fields");
});
