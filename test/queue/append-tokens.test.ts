import { describe, expect, it } from "vitest";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { cancelRequest } from "#shared/queue/ends/cancel.js";
import { logKey, outcomeKey } from "#shared/queue/keys.js";
import { readLogs } from "#shared/queue/admission/read-logs.js";
import { appendTokens, type Append } from "#shared/queue/work/streams/append-tokens.js";
import { takeFrom } from "#shared/queue/work/liveness/take-from.js";
import { finalRecord, record, streaming, useLab, type Lab } from "../support/queue/lab.js";

async function begin(lab: Lab, attendedMs = 0) {
  await lab.admitStream("r1", attendedMs);
  const { entry, request } = await lab.takeOne();
  const queue = streaming(lab.queue);
  const send = async (first: number, records: readonly string[], how: Pick<Append, "final" | "note" | "seen">) => {
    const [said] = await appendTokens(queue, [
      { lane: lab.lane, entry, tenant: DEFAULT_TENANT, request, first, records, ...how },
    ]);
    return said;
  };
  const append = (first: number, records: readonly string[], final = false) => send(first, records, { final });
  const appendSeen = (first: number, records: readonly string[]) => send(first, records, { final: false, seen: true });
  return { entry, send, append, appendSeen, out: outcomeKey(lab.addressOf("r1")), log: logKey(lab.addressOf("r1")) };
}

describe("appendTokens", () => {
  const lab = useLab();

  it("appends: a record lies at its index", async () => {
    const { append } = await begin(lab);
    expect(await append(0, [record(0)])).toBe("appended");
    expect(await append(1, [record(1), record(2)])).toBe("appended");
    expect(await lab.logOf("r1")).toEqual([record(0), record(1), record(2)]);
  });

  it("notes when the stream began, once, and lets the log live as long as the outcome's record", async () => {
    const { append, out, log } = await begin(lab);
    await append(0, [record(0)]);
    const { at, began } = await lab.outcomeFields("r1");
    expect(Number(began)).toBeGreaterThanOrEqual(Number(at));
    const lapses = await lab.redis.pexpiretime(out);
    expect(lapses).toBeGreaterThan(0);
    expect(await lab.redis.pexpiretime(log)).toBe(lapses);
    await lab.redis.hset(out, "began", "1");
    await append(1, [record(1)]);
    expect(await lab.outcomeFields("r1")).toMatchObject({ began: "1" });
  });

  it("appends once what is appended again under a lost reply, and what is new behind it", async () => {
    const { append } = await begin(lab);
    await append(0, [record(0)]);
    expect(await append(0, [record(0)])).toBe("appended");
    expect(await append(0, [record(0), record(1)])).toBe("appended");
    expect(await append(1, [record(1), finalRecord(2)], true)).toBe("appended");
    expect(await append(1, [record(1), finalRecord(2)], true)).toBe("appended");
    expect(await lab.logOf("r1")).toEqual([record(0), record(1), finalRecord(2)]);
  });

  it("keeps the timings beside the log, for the reader of the final record", async () => {
    const { send } = await begin(lab);
    await send(0, [record(0)], { final: false });
    const note = '[1.5,20,"ab"]';
    const last = [record(1), finalRecord(2)];
    expect(await send(1, last, { final: true, note })).toBe("appended");
    expect(await send(1, last, { final: true, note })).toBe("appended");
    const read = (from: number) => readLogs(lab.redis, [{ ...lab.addressOf("r1"), from }]);
    expect(await read(0)).toEqual([{ said: "records", records: [record(0), ...last], more: false, note }]);
    expect(await read(2)).toMatchObject([{ records: [finalRecord(2)], note }]);
  });

  it("keeps bytes as they are", async () => {
    const { entry, log } = await begin(lab);
    const bytes = Buffer.from('{"text":"käse \u{1f9c0} \u2028"}', "utf8");
    await appendTokens(streaming(lab.queue), [
      { lane: lab.lane, entry, tenant: DEFAULT_TENANT, request: "r1", first: 0, records: [bytes], final: false },
    ]);
    expect(await lab.redis.lrangeBuffer(log, 0, -1)).toEqual([bytes]);
  });

  it("is refused to a worker that lost the entry", async () => {
    const { append } = await begin(lab);
    await append(0, [record(0)]);
    await takeFrom(lab.other, lab.queue.consumer, 10);
    expect(await append(1, [record(1)])).toBe("lost");
    expect(await append(1, [finalRecord(1)], true)).toBe("lost");
    expect(await lab.logOf("r1")).toEqual([record(0)]);
    expect(await lab.outcomeFields("r1")).not.toHaveProperty("sealed");
  });

  it("writes nothing to a request that has an outcome", async () => {
    const { append } = await begin(lab);
    await lab.giveError("r1", "{}");
    expect(await append(0, [record(0)])).toBe("ended");
    expect(await append(0, [finalRecord(0)], true)).toBe("ended");
    expect(await lab.logOf("r1")).toEqual([]);
  });

  it("writes nothing to a request whose record is gone", async () => {
    const { append, out } = await begin(lab);
    await lab.redis.unlink(out);
    expect(await append(0, [finalRecord(0)], true)).toBe("ended");
    expect(await lab.redis.exists(out)).toBe(0);
    expect(await lab.logOf("r1")).toEqual([]);
  });

  it("writes nothing behind the final record", async () => {
    const { append } = await begin(lab);
    await append(0, [finalRecord(0)], true);
    expect(await append(1, [record(1)])).toBe("lost");
    expect(await append(1, [finalRecord(1)], true)).toBe("lost");
    expect(await append(0, [finalRecord(0)], true)).toBe("appended");
    expect(await lab.logOf("r1")).toEqual([finalRecord(0)]);
  });

  it("takes no record of another worker, in a log that this one has sealed, for the caller's", async () => {
    const { append, appendSeen } = await begin(lab);
    await append(0, [record(0)]);
    await append(1, [finalRecord(1)], true);
    expect(await append(1, [record(1)])).toBe("lost");
    expect(await appendSeen(1, [record(1)])).toBe("lost");
    expect(await lab.logOf("r1")).toEqual([record(0), finalRecord(1)]);
  });

  it("does not ask again whether a stream is wanted that was seen a moment ago", async () => {
    const { append, appendSeen, out } = await begin(lab, 60_000);
    await append(0, [record(0)]);
    await lab.redis.hset(out, "wanted", "1");
    expect(await appendSeen(1, [record(1)])).toBe("appended");
    expect(await append(2, [record(2)])).toBe("unwanted");
    expect(await lab.logOf("r1")).toEqual([record(0), record(1)]);
  });

  it("finds whatever else has happened to a stream that was seen a moment ago", async () => {
    const { append, appendSeen, log } = await begin(lab, 60_000);
    // The first record begins the stream. An append that comes twice writes once, although the
    // writer has just seen the stream.
    expect(await appendSeen(0, [record(0)])).toBe("appended");
    expect(await lab.outcomeFields("r1")).toHaveProperty("began");
    expect(await appendSeen(0, [record(0), record(1)])).toBe("appended");
    expect(await lab.logOf("r1")).toEqual([record(0), record(1)]);
    await lab.redis.rename(log, `${log}.kept`);
    expect(await appendSeen(2, [record(2)])).toBe("gap");
    expect(await lab.redis.exists(log)).toBe(0);
    await lab.redis.rename(`${log}.kept`, log);
    const ending = { code: "cancelled", message: "the request was cancelled", ttlMs: 100_000, stream: true } as const;
    await cancelRequest(lab.redis, lab.addressOf("r1"), ending);
    const sealed = await lab.logOf("r1");
    expect(sealed).toHaveLength(3);
    expect(await appendSeen(2, [record(2)])).toBe("ended");
    expect(await lab.logOf("r1")).toEqual(sealed);
    await takeFrom(lab.other, lab.queue.consumer, 10);
    expect(await appendSeen(3, [record(3)])).toBe("lost");
    expect(await append(3, [record(3)])).toBe("lost");
    expect(await lab.logOf("r1")).toEqual(sealed);
  });

  it("writes nothing that nobody wants, but a final record all the same", async () => {
    const { append, out } = await begin(lab, 60_000);
    expect(await append(0, [record(0)])).toBe("appended");
    await lab.redis.hset(out, "wanted", "1");
    expect(await append(1, [record(1)])).toBe("unwanted");
    expect(await lab.logOf("r1")).toEqual([record(0)]);
    expect(await append(1, [finalRecord(1)], true)).toBe("appended");
    expect(await lab.outcomeFields("r1")).toMatchObject({ sealed: "1" });
  });

  it("says 'unwanted' only when none of the records is in the log: the worker must know where its final one goes", async () => {
    const { append, out } = await begin(lab, 60_000);
    await append(0, [record(0)]);
    await lab.redis.hset(out, "wanted", "1");
    expect(await append(0, [record(0)])).toBe("appended");
    expect(await append(0, [record(0), record(1)])).toBe("appended");
    expect(await append(2, [record(2)])).toBe("unwanted");
  });

  it("goes on unwanted while gateways may not have been able to say otherwise", async () => {
    const { entry, append, out } = await begin(lab, 60_000);
    await append(0, [record(0)]);
    await lab.redis.hset(out, "wanted", "1");
    const next = {
      lane: lab.lane,
      entry,
      tenant: DEFAULT_TENANT,
      request: "r1",
      first: 1,
      records: [record(1)],
      final: false,
    };
    expect(await appendTokens(streaming(lab.queue), [next], { heedWanted: false })).toEqual(["appended"]);
  });

  it("leaves no gap where a log was deleted from outside", async () => {
    const { append, log } = await begin(lab);
    await append(0, [record(0)]);
    await lab.redis.unlink(log);
    expect(await append(1, [record(1)])).toBe("gap");
    expect(await append(1, [finalRecord(1)], true)).toBe("gap");
    expect(await lab.logOf("r1")).toEqual([]);
    expect(await lab.outcomeFields("r1")).not.toHaveProperty("sealed");
  });

  it("seals no log whose final record is another's place", async () => {
    const { append } = await begin(lab);
    await append(0, [record(0)]);
    expect(await append(0, [finalRecord(0)], true)).toBe("gap");
    expect(await lab.outcomeFields("r1")).not.toHaveProperty("sealed");
    expect(await append(1, [finalRecord(1)], true)).toBe("appended");
  });

  it("answers for each request of an iteration, past what one call takes", async () => {
    const names = Array.from({ length: 100 }, (_, i) => `r${i}`);
    for (const name of names) await lab.admitStream(name);
    const deliveries = await lab.take();
    await lab.giveError("r7", "{}");
    const wide = "x".repeat(20_000);
    const appends = (first: number) =>
      deliveries.map(({ lane, entry, request }): Append => ({
        lane,
        entry,
        tenant: DEFAULT_TENANT,
        request,
        first,
        records: [wide, wide],
        final: false,
      }));
    const said = await appendTokens(streaming(lab.queue), appends(0));
    expect(said).toEqual(names.map((name) => (name === "r7" ? "ended" : "appended")));
    expect(await appendTokens(streaming(lab.queue), appends(2))).toEqual(said);
    expect(await appendTokens(streaming(lab.queue), [])).toEqual([]);
    expect(await lab.logOf("r99")).toEqual([wide, wide, wide, wide]);
  });
});
