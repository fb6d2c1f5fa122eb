/**
 * Jobs that wait while all processes are killed, Redis and NATS included, and while the jobs
 * processes are killed or blocked at the due time: each job runs once, and not before its time.
 */
import { describe, expect, it } from "vitest";
import { nth } from "../pace.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { accepted, ask, ended, type Body } from "../../jobs/ask.js";

/** For this long a jobs process does no other work after a signal, not even due jobs. */
const BLOCKED_MS = 7_000;
const stillStanding = `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)),0,0,${BLOCKED_MS})`;
const blocking = `process.on("SIGUSR2",()=>{${stillStanding}})`;

const served = useFleet({
  gateways: 2,
  workers: 2,
  jobs: 2,
  models: ["accumulate"],
  env: { BATON_BUCKETS: "4" },
  flags: (member) => (member.startsWith("jobs") ? ["--import", `data:text/javascript,${blocking}`] : []),
});

const JOBS = Number(process.env["BATON_FULL"] === "1") * 960 + 40;
let sequences = 0;

const step = (sequence: number, value: number, start = false) => ({
  parameters: { sequence_id: sequence, sequence_start: start },
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [value] }],
});
const add = async (sequence: number, value: number, start = false) => {
  const url = `${served.url}/v2/models/accumulate/infer`;
  const { status, text, body } = await ask(url, { body: step(sequence, value, start) });
  if (status !== 200) throw new Error(`a step was answered ${status} ${text}`);
  return (body as unknown as { outputs: { data: number[] }[] }).outputs[0]?.data[0];
};

/** Submits jobs with a sequence each, which add 1 and are all due at one time. */
async function delayed(inMs: number, count = JOBS): Promise<[sequence: number, view: Body][]> {
  const all = Array.from({ length: count }, () => ++sequences);
  await Promise.all(all.map((sequence) => add(sequence, 0, true)));
  const at = new Date(Date.now() + inMs).toISOString();
  return Promise.all(
    all.map(async (sequence, i): Promise<[number, Body]> => {
      const headers = { "idempotency-key": `${sequence}` };
      const job = { infer: step(sequence, 1), run_at: at, attempts: 3 };
      return [sequence, await accepted(nth(served.fleet.urls, i), "accumulate", job, headers)];
    }),
  );
}

async function expectOnce(jobs: readonly [number, Body][]): Promise<void> {
  const ends = await Promise.all(jobs.map(([, { id }]) => ended(served.url, id)));
  expect(ends.filter(({ state, attempts_made: made }) => state !== "completed" || made !== 1)).toEqual([]);
  for (const { run_at: due, queued_at: queued } of ends) {
    expect(Date.parse(queued ?? "")).toBeGreaterThanOrEqual(Date.parse(due ?? ""));
  }
  expect(await Promise.all(jobs.map(([sequence]) => add(sequence, 0)))).toEqual(jobs.map(() => 1));
}

const HOLDS = { timeout: 180_000 };
const UNTIL_DUE_MS = 4_000;

describe("jobs that wait", () => {
  it("run once although every process was killed meanwhile, and started again", HOLDS, async () => {
    const { fleet } = served;
    const jobs = await delayed(UNTIL_DUE_MS);
    const members = [...fleet.gateways.map(({ member }) => member), ...fleet.jobs, ...fleet.workers];
    await Promise.all([...members.map((one) => one.kill()), fleet.redis.kill(), fleet.nats.kill()]);
    await Promise.all([fleet.redis.restart(), fleet.nats.restart()]);
    await Promise.all(members.map((one) => one.start()));
    await expectOnce(jobs);
  });

  it("run once although both jobs processes are killed again and again while they are due", HOLDS, async () => {
    const jobs = await delayed(UNTIL_DUE_MS);
    const due = Date.parse(jobs[0]?.[1].run_at ?? "");
    for (let i = 0; i < 4; i++) {
      const wait = due - Date.now() - 200 + i * 100;
      await new Promise((resolve) => setTimeout(resolve, Math.max(wait, 0)));
      await nth(served.fleet.jobs, i).restart();
    }
    await expectOnce(jobs);
  });

  it("run once although a jobs process is blocked past its locks while they are due", HOLDS, async () => {
    const { redis } = served;
    const jobs = await delayed(UNTIL_DUE_MS, 5 * JOBS);
    // The blocked process then holds timers, which the other process takes over, and replies in its
    // socket.
    const areLeft = async () => (await redis.zcard("{jobs}:due:delayed")) + (await redis.llen("{jobs}:due:wait")) > 0;
    while ((await redis.llen("{jobs}:due:active")) < 40 && (await areLeft()));
    const [one] = served.fleet.jobs;
    process.kill(one?.process.pid ?? 0, "SIGUSR2");
    await expectOnce(jobs);
    expect(one?.process.alive).toBe(true);
  });
});
