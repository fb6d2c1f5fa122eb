/** Clients make, view, list, pause and remove schedules, and read refusals. */
import { describe, expect, it } from "vitest";
import { ended, simpleBody } from "../jobs/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { askFor, find, jobsOf, made, type ScheduleAnswer } from "./ask.js";

const served = useFleet({
  gateways: 2,
  jobs: 1,
  models: ["simple", "gen-cheap"],
  env: { BATON_TENANT_HEADER: "x-tenant" },
  direct: true,
});

const as = (tenant: string) => ({ headers: { "x-tenant": tenant } });
const post = (tenant: string) => ({ ...as(tenant), method: "POST" });
const job = { infer: simpleBody(3), labels: { team: "blue" }, priority: 7 };
const weekdays = { cron: "30 9 * * 1-5", timezone: "Europe/Berlin", job };
const later = (ms: number) => new Date(Date.now() + ms).toISOString();
const DAY = 86_400_000;

describe("a schedule", () => {
  it("is shown as it was made, at any gateway", async () => {
    const [url = "", other = ""] = served.fleet.urls;
    const sent = { ...weekdays, limit: 12 };
    const { status, headers, body } = await askFor(url, "/models/simple/schedules", { body: sent, ...as("shown") });
    expect(status).toBe(201);
    expect(headers.get("location")).toBe(`/v2/schedules/${body.id}`);
    expect(body.id).toMatch(/^sched_[\w-]{22,}$/);
    expect(body).toMatchObject({
      object: "schedule",
      model: "simple",
      version: null,
      cron: "30 9 * * 1-5",
      timezone: "Europe/Berlin",
      every: null,
      start_at: null,
      end_at: null,
      limit: 12,
      state: "active",
      last_run_at: null,
      last_job_id: null,
      last_error: null,
      runs: 0,
      job,
    });
    expect(body.next_runs).toHaveLength(5);
    expect(body.next_run_at).toBe(body.next_runs[0]);
    const clock = new Intl.DateTimeFormat("en", { timeZone: "Europe/Berlin", timeStyle: "short", hourCycle: "h23" });
    for (const next of body.next_runs) expect(clock.format(new Date(next))).toBe("09:30");
    expect(await find(other, body.id, as("shown"))).toEqual(body);
  });

  it("makes jobs at its times, each once, and ends after its limit", async () => {
    const { url } = served;
    const {
      id,
      created_at: at,
      next_runs: next,
    } = await made(url, "simple", { every: 1_000, limit: 3, job }, as("runs"));
    await expect.poll(async () => (await find(url, id, as("runs"))).state).toBe("ended");
    const view = await find(url, id, as("runs"));
    const jobs = await jobsOf(url, id, as("runs"));
    expect(next).toHaveLength(3);
    expect(view).toMatchObject({ runs: 3, next_run_at: null, next_runs: [], last_job_id: jobs.at(-1)?.id });
    expect(view.last_run_at).toBe(jobs.at(-1)?.scheduled_for);
    expect(jobs).toHaveLength(3);
    for (const one of jobs) {
      expect(one).toMatchObject({ schedule: id, labels: job.labels, priority: 7 });
      // After a missed moment the next one came.
      expect((Date.parse(one.scheduled_for) - Date.parse(at)) % 1_000).toBe(0);
      expect(Date.parse(one.created_at)).toBeGreaterThanOrEqual(Date.parse(one.scheduled_for));
      expect(await ended(url, one.id, as("runs").headers)).toMatchObject({ state: "completed" });
    }
    expect(new Set(jobs.map((one) => one.scheduled_for)).size).toBe(3);
    expect((await askFor(url, `/schedules/${id}/resume`, post("runs"))).body).toMatchObject({ code: "schedule_ended" });
    expect((await askFor(url, `/schedules/${id}/pause`, post("runs"))).status).toBe(409);
  });

  it("makes generations, too", async () => {
    const { url } = served;
    const generate = { text_input: "Once", max_tokens: 3 };
    const { id } = await made(url, "gen-cheap", { every: 1_000, limit: 1, job: { generate } }, as("texts"));
    await expect.poll(async () => (await find(url, id, as("texts"))).runs).toBe(1);
    const [one] = await jobsOf(url, id, as("texts"));
    expect(await ended(url, one?.id ?? "", as("texts").headers)).toMatchObject({
      state: "completed",
      type: "generate",
    });
  });

  it("makes none while it is paused, and none for that time afterwards", async () => {
    const { url } = served;
    const { id } = await made(url, "simple", { every: 1_000, job }, as("paused"));
    await expect.poll(async () => (await find(url, id, as("paused"))).runs).toBeGreaterThan(0);
    const { body: paused } = await askFor(url, `/schedules/${id}/pause`, post("paused"));
    expect(paused).toMatchObject({ state: "paused", next_run_at: null, next_runs: [] });
    expect((await askFor(url, `/schedules/${id}/pause`, post("paused"))).status).toBe(200);
    const from = Date.now();
    // Another schedule continues meanwhile, for longer than two of its intervals.
    const { id: witness } = await made(url, "simple", { every: 1_000, limit: 3, job }, as("paused"));
    await expect.poll(async () => (await find(url, witness, as("paused"))).state).toBe("ended");
    const before = (await jobsOf(url, id, as("paused"))).length;
    const until = Date.now();
    const { body: resumed } = await askFor(url, `/schedules/${id}/resume`, post("paused"));
    expect(resumed.state).toBe("active");
    expect(Date.parse(resumed.next_run_at ?? "")).toBeGreaterThan(until - 50);
    await expect.poll(async () => (await jobsOf(url, id, as("paused"))).length).toBeGreaterThan(before);
    const ticks = (await jobsOf(url, id, as("paused"))).map((one) => Date.parse(one.scheduled_for));
    expect(ticks.filter((tick) => tick > from + 50 && tick < until - 50)).toEqual([]);
    expect((await askFor(url, `/schedules/${id}`, { ...as("paused"), method: "DELETE" })).status).toBe(204);
  });

  it("is gone when it is removed, and its jobs stay", async () => {
    const { url } = served;
    const { id } = await made(url, "simple", { every: 1_000, limit: 1, job }, as("gone"));
    await expect.poll(async () => (await find(url, id, as("gone"))).runs).toBe(1);
    expect(await askFor(url, `/schedules/${id}`, { ...as("gone"), method: "DELETE" })).toMatchObject({
      status: 204,
      text: "",
    });
    for (const path of ["", "/pause", "/resume"]) {
      const answer = await askFor(url, `/schedules/${id}${path}`, path === "" ? as("gone") : post("gone"));
      expect(answer).toMatchObject({ status: 404, body: { code: "unknown_schedule" } });
    }
    expect((await askFor(url, `/schedules/${id}`, { ...as("gone"), method: "DELETE" })).status).toBe(404);
    expect(await jobsOf(url, id, as("gone"))).toHaveLength(1);
  });

  it("belongs to its tenant", async () => {
    const { url } = served;
    const { id } = await made(url, "simple", weekdays, as("owner"));
    const guest = as("guest");
    for (const [method, path] of [
      ["GET", ""],
      ["DELETE", ""],
      ["POST", "/pause"],
      ["POST", "/resume"],
    ] as const) {
      const answer = await askFor(url, `/schedules/${id}${path}`, { ...guest, method });
      expect(answer).toMatchObject({ status: 404, body: { code: "unknown_schedule" } });
    }
    expect((await askFor(url, "/schedules", guest)).body.data).toEqual([]);
    expect(await jobsOf(url, id, guest)).toEqual([]);
  });

  it("is made once under a key", async () => {
    const { url } = served;
    const keyed = { headers: { "x-tenant": "keyed", "idempotency-key": "morning" } };
    const first = await askFor(url, "/models/simple/schedules", { body: weekdays, ...keyed });
    const again = await askFor(url, "/models/simple/schedules", { body: weekdays, ...keyed });
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(again.body).toEqual(first.body);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    const other = await askFor(url, "/models/simple/schedules", { body: { every: 5_000, job }, ...keyed });
    expect(other).toMatchObject({ status: 422, body: { code: "idempotency_mismatch" } });
    expect((await askFor(url, "/schedules", as("keyed"))).body.data).toHaveLength(1);
  });

  it("is listed page by page, the newest first", async () => {
    const { url } = served;
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.unshift((await made(url, "simple", weekdays, as("lists"))).id);
    const first = (await askFor(url, "/schedules?limit=3", as("lists"))).body;
    expect(first).toMatchObject({ object: "list", first_id: ids[0], last_id: ids[2], has_more: true });
    const rest = (await askFor(url, `/schedules?limit=3&after=${first.last_id}`, as("lists"))).body;
    expect([...first.data, ...rest.data].map(({ id }) => id)).toEqual(ids);
    expect(rest.has_more).toBe(false);
    expect(first.data[0]).toEqual(await find(url, ids[0] ?? "", as("lists")));
    for (const query of ["limit=0", "limit=101", "after=sched_unknown", "state=active"]) {
      expect((await askFor(url, `/schedules?${query}`, as("lists"))).status).toBe(400);
    }
  });

  it("is one of a thousand at most: of more, each is refused, and none is there", { timeout: 120_000 }, async () => {
    const { url } = served;
    const MOST = 1_000;
    const sent = process.env["BATON_FULL"] === undefined ? MOST + 50 : 100_000;
    const answers = { made: 0, refused: 0 };
    const sendOne = async () => {
      const { status, body } = await askFor(url, "/models/simple/schedules", { body: weekdays, ...as("many") });
      if (status === 201) answers.made++;
      else if (status === 429 && body.code === "schedule_limit") answers.refused++;
    };
    let left = sent;
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        while (left-- > 0) await sendOne();
      }),
    );
    expect(answers).toEqual({ made: MOST, refused: sent - MOST });
    let listed = 0;
    for (let after = "", more = true; more;) {
      const { body } = await askFor(url, `/schedules?limit=100${after}`, as("many"));
      listed += body.data.length;
      [after, more] = [`&after=${body.last_id}`, body.has_more];
    }
    expect(listed).toBe(MOST);
  });

  it("that would take too much memory with the others is refused", async () => {
    const { url } = served;
    const megabyte = `{"infer":${JSON.stringify(simpleBody(1))}${" ".repeat(1_000_000)}}`;
    const body = `{"every":60000,"job":${megabyte}}`;
    const answers: ScheduleAnswer[] = [];
    for (let i = 0; i < 20; i++) answers.push(await askFor(url, "/models/simple/schedules", { body, ...as("large") }));
    const refused = answers.filter(({ status }) => status !== 201);
    expect(refused.map((one) => [one.status, one.body.code])).toEqual(refused.map(() => [429, "schedule_limit"]));
    expect(refused.length).toBeGreaterThan(0);
    // A removed schedule makes room.
    const id = answers[0]?.body.id ?? "";
    expect((await askFor(url, `/schedules/${id}`, { ...as("large"), method: "DELETE" })).status).toBe(204);
    expect((await askFor(url, "/models/simple/schedules", { body, ...as("large") })).status).toBe(201);
  });
});

const wrong: [what: object | string, words: RegExp][] = [
  [{}, /job is missing/],
  ["[]", /root must be an object/],
  ['{"job":', /failed to parse/],
  [{ job }, /either cron.* or every/],
  [{ job, cron: "* * * * *", every: 1_000 }, /either cron.* or every/],
  [{ job, cron: "* * * * * *" }, /five fields are needed .*not 6/],
  [{ job, cron: "@daily" }, /shorthands/],
  [{ job, cron: "@every 5m" }, /shorthands/],
  [{ job, cron: "0 0 30 2 *" }, /no such date/],
  [{ job, cron: "0 0 31 2,4,6 *" }, /no such date/],
  [{ job, cron: "61 * * * *" }, /cron is no expression/],
  [{ job, cron: 5 }, /'cron'/],
  [{ job, cron: "0 0 1 1 *", timezone: "Mars/Olympus" }, /timezone must be a name .*'Mars\/Olympus'/],
  [{ job, cron: "0 0 1 1 *", timezone: "+01:00" }, /timezone must be/],
  [{ job, cron: "0 0 1 1 *", timezone: "../../etc/passwd" }, /timezone must be/],
  [{ job, every: 60_000, timezone: "UTC" }, /timezone goes with cron/],
  [{ job, every: 999 }, /every must be/],
  [{ job, every: 1e15 }, /every must be/],
  [{ job, every: "5m" }, /'every'/],
  [{ job, every: 1_000.5 }, /'every'/],
  [`{"every":9223372036854775808,"job":${JSON.stringify(job)}}`, /'every'/],
  [{ ...weekdays, start_at: "9999-01-01T00:00:00Z" }, /start_at must lie within twenty years/],
  [{ ...weekdays, end_at: "9999-12-31T23:59:59Z" }, /end_at must lie within twenty years/],
  [{ ...weekdays, start_at: "2099-02-30T00:00:00Z" }, /start_at must be a time/],
  [{ ...weekdays, start_at: "tomorrow" }, /start_at must be a time/],
  [{ ...weekdays, end_at: "2020-01-01T00:00:00Z" }, /end_at must not lie in the past/],
  [{ ...weekdays, start_at: later(3 * DAY), end_at: later(2 * DAY) }, /end_at must not lie before start_at/],
  [{ job, every: DAY, end_at: later(DAY / 2) }, /none of its times/],
  [{ ...weekdays, limit: 0 }, /limit must be/],
  [{ ...weekdays, limit: "9" }, /'limit'/],
  [{ ...weekdays, colour: "blue" }, /unknown member 'colour'/],
  [{ ...weekdays, job: 5 }, /root must be an object/],
  [{ ...weekdays, job: {} }, /exactly one of the members/],
  [{ ...weekdays, job: { ...job, delay: 5_000 } }, /job\.delay is not for schedules/],
  [{ ...weekdays, job: { ...job, run_at: later(DAY) } }, /job\.run_at is not for schedules/],
  [{ ...weekdays, job: { ...job, deadline: later(DAY) } }, /job\.deadline must be milliseconds/],
  [
    { ...weekdays, job: { ...job, webhook: { url: "https://example.com", secret: "whsec_x" } } },
    /job\.webhook\.secret/,
  ],
  [{ ...weekdays, job: { ...job, priority: 10 } }, /priority must be/],
  [{ ...weekdays, job: { ...job, labels: { a: 1 } } }, /labels\.a must be/],
  [{ ...weekdays, job: { infer: { inputs: [] } } }, /expected 2 inputs/],
];

describe("what is wrong with a schedule", () => {
  it.each(wrong)("%j", async (body, words) => {
    const answer = await askFor(served.url, "/models/simple/schedules", { body, ...as("wrong") });
    expect(answer.text).toMatch(words);
    expect(answer.status).toBe(400);
  });

  it("its model", async () => {
    const answer = await askFor(served.url, "/models/nobody/schedules", { body: weekdays, ...as("wrong") });
    expect(answer).toMatchObject({ status: 404, body: { code: "unknown_model" } });
  });
});
