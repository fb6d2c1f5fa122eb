import { describe, expect, it } from "vitest";
import {
  dueTick,
  fired,
  newSchedule,
  parseSchedule,
  paused,
  renderSchedule,
  resumed,
  scheduleText,
  triedUntil,
  withMiss,
  withRun,
  type AskedSchedule,
  type Schedule,
} from "./schedule.js";

const T0 = Date.parse("2026-12-01T00:00:00Z");
const SECOND = 1_000;
const asked: AskedSchedule = {
  model: "simple",
  version: null,
  rhythm: { every: SECOND },
  startAt: null,
  endAt: null,
  limit: null,
};
const name = { id: "sched_1", tenant: "default" };
const make = (some: Partial<AskedSchedule> = {}) => newSchedule({ ...asked, ...some }, name, T0);
/** The work of a process for one time. */
const ran = (one: Schedule, now: number) => {
  const tick = dueTick(one, now);
  if (tick === undefined) throw new Error("nothing is due");
  return withRun(fired(one, tick), tick, `job_${tick}`);
};
const shown = (one: Schedule) =>
  JSON.parse(renderSchedule(one, Buffer.from("{}"))) as { next_runs: string[]; last_run_at: string | null };

describe("a schedule", () => {
  it("is due at each of its times, once", () => {
    let one = make();
    expect(one.next).toBe(T0 + SECOND);
    expect(dueTick(one, T0 + SECOND - 1)).toBeUndefined();
    one = ran(one, T0 + SECOND);
    expect(one).toMatchObject({ runs: 1, lastTick: T0 + SECOND, next: T0 + 2 * SECOND, firing: null });
    expect(dueTick(one, T0 + SECOND)).toBeUndefined();
    expect(withRun(one, T0 + SECOND, "another")).toBe(one);
  });

  it("makes up for the newest of its missed times only", () => {
    const one = ran(make(), T0 + 3_600 * SECOND + 1);
    expect(one).toMatchObject({ runs: 1, lastTick: T0 + 3_600 * SECOND, next: T0 + 3_601 * SECOND });
  });

  it("makes up for none of a pause", () => {
    const one = resumed(paused(ran(make(), T0 + SECOND)), T0 + 100 * SECOND);
    expect(one).toMatchObject({ state: "active", next: T0 + 101 * SECOND });
    expect(paused(one)).toMatchObject({ state: "paused", next: null });
    expect(dueTick(paused(one), T0 + 200 * SECOND)).toBeUndefined();
    expect(resumed(one, T0 + 200 * SECOND)).toBe(one);
  });

  it("counts a job that was under way when it was paused", () => {
    const tick = T0 + SECOND;
    const one = withRun(paused(fired(make(), tick)), tick, "job_1");
    expect(one).toMatchObject({ state: "paused", next: null, runs: 1, lastJob: "job_1", firing: null });
    const again = withRun(resumed(paused(fired(make(), tick)), T0 + 10 * SECOND), tick, "job_1");
    expect(again).toMatchObject({ state: "active", next: T0 + 11 * SECOND, runs: 1 });
  });

  it("ends after its limit, and at its end", () => {
    let one = make({ limit: 2 });
    expect(shown(one).next_runs).toHaveLength(2);
    one = ran(one, T0 + SECOND);
    expect(shown(one).next_runs).toHaveLength(1);
    expect(ran(one, T0 + 2 * SECOND)).toMatchObject({ state: "ended", next: null, runs: 2 });
    const brief = make({ endAt: T0 + 2_500 });
    expect(shown(brief).next_runs).toHaveLength(2);
    // The schedule has missed the last time, and runs that job now.
    expect(ran(brief, T0 + 3_600 * SECOND)).toMatchObject({ state: "ended", lastTick: T0 + 2 * SECOND });
    expect(make({ endAt: T0 + 500 }).state).toBe("ended");
  });

  it("begins at its start, from which its interval counts", () => {
    expect(make({ startAt: T0 + 1_500 })).toMatchObject({ next: T0 + 1_500 });
    expect(make({ startAt: T0 - 1_500 })).toMatchObject({ next: T0 + 500 });
    const rhythm = { cron: "0 0 * * *", timezone: "UTC" };
    const startAt = T0 + 3 * 86_400 * SECOND;
    expect(make({ rhythm, startAt })).toMatchObject({ next: startAt });
  });

  it("notes why a time has made no job, and goes on", () => {
    const tick = T0 + SECOND;
    const error = { at: tick, code: "unknown_model", message: "no such model" };
    const one = withMiss(fired(make({ limit: 1 }), tick), tick, error);
    expect(one).toMatchObject({ error, runs: 0, next: T0 + 2 * SECOND, state: "active" });
    expect(withMiss(one, tick, null)).toBe(one);
    expect(ran(one, T0 + 2 * SECOND)).toMatchObject({ error: null, runs: 1, state: "ended" });
  });

  it("tries a time until the next one comes", () => {
    expect(triedUntil(make(), T0 + SECOND)).toBe(T0 + 2 * SECOND);
  });

  it("is read as it was written; what is none is not read", () => {
    const one = ran(make(), T0 + SECOND);
    expect(parseSchedule(scheduleText(one))).toEqual(one);
    expect(() => parseSchedule('{"id":"sched_1"}')).toThrow("another version");
    expect(() => parseSchedule(JSON.stringify({ ...one, colour: "blue" }))).toThrow("another version");
  });
});
