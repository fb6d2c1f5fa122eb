import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { logKey } from "#shared/queue/keys.js";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import { giveOutcome } from "#shared/queue/ends/give-outcome.js";
import { readLogs } from "#shared/queue/admission/read-logs.js";
import { collectLog } from "../../gateway/requests/status.js";
import { record, useLab, type Lab } from "../support/queue/lab.js";

function write(lab: Lab, request: string, records: readonly string[]): Promise<number> {
  return lab.redis.rpush(logKey(lab.addressOf(request)), ...records);
}

function read(lab: Lab, request: string, from: number) {
  return readLogs(lab.redis, [{ ...lab.addressOf(request), from }]).then(([page]) => page);
}

function records(count: number, bytes = 1): string[] {
  return Array.from({ length: count }, (_, i) =>
    record(i, { choices: [{ index: 0, text: "x".repeat(bytes), tokens: [1] }] }),
  );
}

describe("readLogs", () => {
  const lab = useLab();

  it("gives what there is from an index on, a page at a time", async () => {
    await lab.admitStream("r1");
    const whole = records(150);
    await write(lab, "r1", whole);
    expect(await read(lab, "r1", 0)).toEqual({ said: "records", records: whole.slice(0, 64), more: true });
    expect(await read(lab, "r1", 64)).toEqual({ said: "records", records: whole.slice(64, 128), more: true });
    expect(await read(lab, "r1", 128)).toEqual({ said: "records", records: whole.slice(128), more: false });
    expect(await read(lab, "r1", 149)).toEqual({ said: "records", records: whole.slice(149), more: false });
  });

  it("says what is known where there is nothing", async () => {
    await lab.admitStream("r1");
    expect(await read(lab, "r1", 0)).toEqual({ said: "running", length: 0 });
    await write(lab, "r1", records(2));
    expect(await read(lab, "r1", 7)).toEqual({ said: "running", length: 2 });
    await cancelRequest(lab.redis, lab.addressOf("r1"), {
      code: "cancelled",
      message: "no",
      ttlMs: 1_000,
      stream: true,
    });
    const last = await lab.redis.lindex(logKey(lab.addressOf("r1")), -1);
    const outcome = { kind: "error", code: "cancelled", message: "no" };
    expect(await read(lab, "r1", 3)).toEqual({ said: "ended", length: 3, outcome, last });
    await lab.admitStream("r2");
    await giveOutcome(lab.redis, lab.addressOf("r2"), { kind: "result", body: Buffer.from("tensors") }, 1_000);
    const empty = { kind: "result", body: Buffer.alloc(0) };
    expect(await read(lab, "r2", 0)).toEqual({ said: "ended", length: 0, outcome: empty, last: undefined });
    expect(await read(lab, "r3", 0)).toEqual({ said: "unknown", length: 0 });
  });

  it("takes hardly more out of a log than it gives, however large the records are", async () => {
    const readAll = async (size: number) => {
      const name = `r${size}`;
      await write(lab, name, records(100, size));
      const page = await read(lab, name, 0);
      const ranges = await rangesOf(lab, () => read(lab, name, 0));
      return { given: page?.said === "records" && page.records.length, ranges };
    };
    expect(await readAll(20_000)).toEqual({ given: 1, ranges: [2] });
    expect(await readAll(4_000)).toEqual({ given: 5, ranges: [2, 3] });
    expect(await readAll(10)).toEqual({ given: 64, ranges: [2, 62] });
  });

  it("gives of many logs no more than a call may hold up others for, and of each the next record at least", async () => {
    const names = Array.from({ length: 32 }, (_, i) => `r${i}`);
    for (const name of names) await write(lab, name, records(100, 10_000));
    const pages = await readLogs(
      lab.redis,
      names.map((request) => ({ ...lab.addressOf(request), from: 1 })),
    );
    const given = pages.map((page) => (page.said === "records" ? page.records : []));
    for (const [i, page] of pages.entries()) {
      expect(page).toMatchObject({ said: "records", more: true });
      expect(JSON.parse(String(given[i]?.[0]))).toMatchObject({ index: 1 });
    }
    const bytes = given.flat().reduce((sum, { length }) => sum + length, 0);
    expect(bytes).toBeLessThan(1_000_000);
  });
});

describe("collectLog", () => {
  const lab = useLab();

  it("puts a long log together page by page", async () => {
    await write(lab, "r1", records(300, 10_000));
    const fold = async () => {
      const folded = await collectLog(lab.redis, lab.addressOf("r1"));
      expect(folded?.choices).toEqual([{ index: 0, text: "x".repeat(3_000_000), finish_reason: null }]);
    };
    expect(Math.max(...(await rangesOf(lab, fold)))).toBeLessThanOrEqual(2);
  });
});

/** The numbers of records that each command of `call` asks for. */
async function rangesOf({ redis, url }: Lab, call: () => Promise<unknown>): Promise<number[]> {
  const monitor = await new Redis(url, { lazyConnect: true }).monitor();
  const ranges: number[] = [];
  let over = false;
  monitor.on("monitor", (_time: string, [name = "", what = "", from, to]: string[]) => {
    if (/^lrange$/i.test(name)) ranges.push(Number(to) - Number(from) + 1);
    if (what === "over") over = true;
  });
  try {
    await call();
    await redis.echo("over");
    await expect.poll(() => over).toBe(true);
  } finally {
    monitor.disconnect();
  }
  return ranges;
}
