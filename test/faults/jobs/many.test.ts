/**
 * 100 000 jobs that wait, half of them for their time and half in the queue. Lists, views and
 * cancellations stay quick, and the jobs process stays small and idle. A jobs process that starts
 * among these jobs is ready at once. Only with BATON_FULL=1; the test prints its figures.
 */
import { resourcesOf } from "../../support/brokers/resources.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { readUntil, until } from "../../support/until.js";
import { describe, expect, it } from "vitest";
import { accepted, ask, ended, simpleBody, standing, submit } from "../../jobs/ask.js";
import { pause } from "../pace.js";

const full = process.env["BATON_FULL"] === "1";
const EACH = Number(process.env["BATON_MANY"] ?? 50_000);
const AT_ONCE = 64;
const TIMEOUT_MS = 1_200_000;

describe.skipIf(!full)("a hundred thousand jobs that wait", () => {
  const served = useFleet({
    jobs: 1,
    models: ["simple"],
    direct: true,
    env: { BATON_QUEUE_LIMIT: "1000000", BATON_TENANT_QUEUE_LIMIT: "1000000", BATON_DELAYED_LIMIT: "1000000" },
  });

  async function each(count: number, act: (i: number) => Promise<unknown>): Promise<void> {
    let next = 0;
    const one = async () => {
      for (let i = next++; i < count; i = next++) await act(i);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
  }
  async function timed<T>(what: string, times: number, act: () => Promise<T>): Promise<T> {
    const took: number[] = [];
    let last: T | undefined;
    for (let i = 0; i < times; i++) {
      const from = performance.now();
      last = await act();
      took.push(performance.now() - from);
    }
    took.sort((a, b) => a - b);
    console.log(what, `p50 ${took[Math.floor(times / 2)]?.toFixed(1)} ms, most ${took.at(-1)?.toFixed(1)} ms`);
    return last as T;
  }

  it("are listed, looked at, cancelled and run", { timeout: TIMEOUT_MS }, async () => {
    const { url, fleet } = served;
    const redis = fleet.redis.connect();
    await fleet.workers[0]?.kill();
    const submitted: string[] = [];
    const from = performance.now();
    await each(2 * EACH, async (i) => {
      const labels = { kind: i === 7 ? "rare" : "usual" };
      const more = i % 2 === 0 ? { delay: 86_400_000 } : { priority: 1 + (i % 9), deadline: 86_400_000 };
      const job = { infer: simpleBody(i % 1000), labels, ...more };
      // If a busy Redis has not answered in time, the key finds the job.
      const answer = await readUntil(
        () => submit(url, "simple", job, { "idempotency-key": `many-${i}` }),
        ({ status }) => status === 202,
        { everyMs: 500 },
      );
      submitted[i] = answer.body.id;
    });
    console.log("submitted", 2 * EACH, "in", Math.round(performance.now() - from), "ms");
    const memory = async () => Number(/used_memory:(\d+)/.exec(await redis.info("memory"))?.[1]);
    console.log("redis MB", Math.round((await memory()) / 1e6));

    const cpu = async () => {
      const text = await redis.info("cpu");
      const of = (name: string) => Number(new RegExp(`${name}:([\\d.]+)`).exec(text)?.[1]);
      return of("used_cpu_sys") + of("used_cpu_user");
    };
    const processCpu = async (pid: number) => {
      const { readFileSync } = await import("node:fs");
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
      return (Number(fields[11]) + Number(fields[12])) / 100;
    };
    const idle = async () => {
      const pid = fleet.jobs[0]?.process.pid ?? 0;
      const before = [await cpu(), await processCpu(pid)];
      await pause(65_000);
      const after = [await cpu(), await processCpu(pid)];
      let rss = 0;
      for (const { rssBytes } of (await resourcesOf(pid)).values()) rss += rssBytes;
      console.log(
        `in 65 s of idleness: Redis ${((after[0] ?? 0) - (before[0] ?? 0)).toFixed(2)} s of CPU, the jobs process`,
        `${((after[1] ?? 0) - (before[1] ?? 0)).toFixed(2)} s, its RSS ${Math.round(rss / 1e6)} MB`,
      );
    };
    await idle();
    const slow = await redis.call("SLOWLOG", "GET", "12");
    console.log("slow", JSON.stringify(slow).slice(0, 3000));

    await timed("list of 100", 20, () => ask(`${url}/v2/jobs?limit=100`));
    await timed("list of 100 scheduled", 20, () => ask(`${url}/v2/jobs?limit=100&state=scheduled`));
    await timed("page that finds nothing", 10, () => ask(`${url}/v2/jobs?state=failed`));
    const rare: string[] = [];
    let pages = 0;
    const walked = performance.now();
    for (let after = "", more = true; more; pages++) {
      const { body } = await ask(`${url}/v2/jobs?label=kind:rare&limit=100${after}`);
      rare.push(...body.data.map(({ id }) => id));
      more = body.has_more;
      after = `&after=${body.last_id}`;
    }
    console.log("all pages for one rare job:", pages, "in", Math.round(performance.now() - walked), "ms");
    expect(rare).toEqual([submitted[7]]);
    await timed("view of the last queued", 20, () => ask(`${url}/v2/jobs/${submitted[2 * EACH - 1]}`));
    await timed("view of a delayed", 20, () => ask(`${url}/v2/jobs/${submitted[0]}`));
    let k = 0;
    await timed("cancel a delayed", 50, () => ask(`${url}/v2/jobs/${submitted[(k += 2)]}`, { method: "DELETE" }));
    k = 1;
    await timed("cancel a queued", 50, () => ask(`${url}/v2/jobs/${submitted[(k += 2)]}`, { method: "DELETE" }));
    await timed("submit", 50, () => accepted(url, "simple", { infer: simpleBody(1) }));

    const restart = performance.now();
    await fleet.jobs[0]?.restart();
    console.log("jobs process restarted in", Math.round(performance.now() - restart));
    const soon = await accepted(url, "simple", { infer: simpleBody(21), delay: 1_000, priority: 1 });
    await standing(url, soon.id, ({ state }) => state === "queued");
    await idle();

    const drain = performance.now();
    await fleet.workers[0]?.start();
    await until(async () => (await ask(`${url}/v2/jobs?state=queued&limit=1`)).body.data.length === 0, 300_000);
    console.log("queued jobs were run in", Math.round(performance.now() - drain), "ms");
    expect((await ended(url, soon.id)).state).toBe("completed");
    redis.disconnect();
  });
});
