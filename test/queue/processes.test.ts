/** The notes of gateways and jobs processes, and the reports that come with them. */
import { afterEach, describe, expect, it } from "vitest";
import { readReports } from "#shared/queue/admission/read-reports.js";
import { registryKeys, REMEMBERED_MS } from "#shared/queue/keys.js";
import { pageField, partText } from "#shared/queue/pieces/report.js";
import { noteProcess, readProcesses, type ProcessNote } from "#shared/queue/processes/note-process.js";
import { ProcessReports } from "#shared/queue/processes/reports.js";
import { SumsReader } from "../../gateway/fleet/sums-reader.js";
import { EndReport } from "../../gateway/outcomes/end-report.js";
import { useLab } from "../support/queue/lab.js";

const lab = useLab();
afterEach(() => lab.redis.flushall());

const listed = (name: string) =>
  JSON.stringify({ kind: "gateway", name, host: "h", pid: 1, startedAt: "2026-11-29T00:00:00Z" });

/** A process with its report, as listProcess keeps it. */
function processOf(name: string) {
  const ends = new EndReport();
  const reports = new ProcessReports(name);
  reports.add(ends);
  const terms = { process: listed(name), before: "", name };
  const note = async (more: Partial<ProcessNote> = {}) => {
    const report = more.forMs === 0 ? [] : reports.next(0, { isLast: true });
    const said = await noteProcess(lab.redis, {
      ...terms,
      forMs: 15_000,
      hasReported: reports.hasReported,
      report,
      ...more,
    });
    if (said === "past") reports.startAfterPast();
    else if (said === "lost") reports.lost();
    else reports.arrived();
    return said;
  };
  return { note, reports, fail: (ms = 1) => ends.failed({ model: "m", version: "1" }, ms) };
}

/** How many requests failed, over all processes and the past. */
async function failures(): Promise<number> {
  const { reports, past } = await readReports(lab.redis);
  return [...reports, ...past].reduce((sum, { sums }) => sum + (sums[1] ?? 0), 0);
}

/** Lets the newest note of a process be so old. */
const grow = (name: string, ms: number) => lab.redis.zadd(registryKeys.processes, Date.now() - ms, listed(name));

describe("the note of a process", () => {
  it("brings what has changed", async () => {
    const [a, b] = [processOf("a"), processOf("b")];
    a.fail(3);
    a.fail(4);
    await a.note();
    b.fail();
    await b.note();
    await a.note();
    expect(await failures()).toBe(3);
    expect((await readProcesses(lab.redis)).map(({ name }) => name)).toEqual(["a", "b"]);
    const ofA = async () => (await readReports(lab.redis)).reports.filter(({ process }) => process === "a");
    expect(await ofA()).toEqual([
      {
        process: "a",
        model: "m",
        version: "1",
        part: { of: "version" },
        last: 0,
        sums: [0, 2, 0, 0, 7_000, 0, 0, 0, 0, 0, 0],
      },
    ]);
    a.fail();
    expect(a.reports.parts()[0]?.sums[1]).toBe(3);
    // Without a change there is nothing to send.
    await a.note();
    expect(a.reports.next(1, { isLast: true })).toEqual([]);
  });

  it("counts the same once the process has left, and if it says so twice", async () => {
    const a = processOf("a");
    a.fail();
    await a.note();
    for (let i = 0; i < 2; i++) {
      await noteProcess(lab.redis, {
        process: listed("a"),
        before: listed("a"),
        forMs: 0,
        name: "a",
        hasReported: true,
        report: [],
      });
      expect(await failures()).toBe(1);
      expect(await lab.redis.exists(registryKeys.reports)).toBe(0);
    }
    expect(await readProcesses(lab.redis)).toEqual([]);
  });

  it("takes the report of a killed process into the past once nobody expects it back", async () => {
    const [a, b] = [processOf("a"), processOf("b")];
    a.fail();
    a.fail();
    await a.note();
    await grow("a", REMEMBERED_MS / 2);
    await b.note();
    expect(await lab.redis.hexists(registryKeys.reports, "a")).toBe(1);
    expect((await readProcesses(lab.redis)).map(({ name }) => name)).toEqual(["b"]);
    await grow("a", 2 * REMEMBERED_MS);
    await b.note();
    expect(await lab.redis.hexists(registryKeys.reports, "a")).toBe(0);
    expect(await lab.redis.hgetall(registryKeys.past)).toEqual({ "m/1": "m/1|0|0 2 0 0 2000 0 0 0 0 0 0" });
    // It was only frozen: it counts on after the past, which has its first two.
    a.fail();
    expect(await a.note()).toBe("past");
    expect(await failures()).toBe(2);
    expect(await a.note()).toBe("noted");
    expect(await failures()).toBe(3);
  });

  it("moves a report without a fall or a rise of what the observer sees", async () => {
    const [a, b, sums] = [processOf("a"), processOf("b"), new SumsReader(lab.redis)];
    const seen = async () => {
      const { reports } = await readReports(lab.redis);
      return (await sums.read(reports, "1")).sums.get("m")?.fail;
    };
    a.fail();
    b.fail();
    b.fail();
    await a.note();
    await b.note();
    expect((await sums.read(undefined, "1")).sums.get("m")?.fail).toBe(3);
    // The other process fails as often in the round in which the report moves, so no sum falls.
    await a.note({ forMs: 0 });
    b.fail();
    await b.note();
    expect(await seen()).toBe(4);
    b.fail();
    await b.note();
    expect(await seen()).toBe(5);
  });

  it("brings everything again to a server that has lost it", async () => {
    const a = processOf("a");
    a.fail();
    await a.note();
    await lab.redis.flushall();
    expect(await a.note()).toBe("lost");
    expect(await a.note()).toBe("noted");
    expect(await failures()).toBe(1);
  });

  it("leaves reports to processes of the version before, and survives what a person writes", async () => {
    const a = processOf("a");
    // As the version before writes: it removes what has expired at once, and the report stays.
    await lab.redis.hset(registryKeys.reports, "gone", "2", pageField("gone", 1), partText("m/1", 0, [0, 5]));
    await lab.redis.zadd(registryKeys.processes, 1, "no process", 2, '{"name":"nobody"}');
    await lab.redis.hset(registryKeys.reports, "a", "many");
    a.fail();
    await a.note();
    expect(await failures()).toBe(6);
    expect(await lab.redis.zcard(registryKeys.processes)).toBe(1);
    const { reports } = await readReports(lab.redis);
    expect(reports.filter(({ process }) => process === "a").map(({ sums }) => sums[1])).toEqual([1]);
  });
});
