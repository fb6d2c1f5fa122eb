/** A stream has no gap and no duplicate, in spite of every fault between the log and the reader. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { logKey } from "#shared/queue/keys.js";
import type { OpenStream } from "../../../gateway/stream/open-stream.js";
import { Cursor } from "../../../gateway/stream/cursor.js";
import { BROKERS_ALONE, StreamLab } from "../../support/streams/lab.js";
import { listen, resume, type Listener, type RelayGateway } from "../../support/streams/relay.js";
import { foreignRequest, Writer } from "../../support/streams/writer.js";
import { asked } from "../../fixtures/generation.js";
import { lastRecord, recordAt, wholeStream } from "../../fixtures/token-records.js";
import { delay } from "#shared/retry.js";
import { heldBytes } from "../../support/brokers/resources.js";
import { until } from "../../support/until.js";

let lab: StreamLab;
let gateway: RelayGateway;
beforeAll(async () => {
  lab = await StreamLab.open(BROKERS_ALONE);
  gateway = await lab.addRelay();
});
afterAll(() => lab.close());

let stream: OpenStream;
let writer: Writer;
beforeEach(async () => {
  stream = await gateway.generate(asked());
  writer = new Writer(lab, stream.id);
});

const live = (from = 0): Listener => listen((signal) => stream.read(from, signal));

describe("a live stream", () => {
  it("is followed however long the subscription takes, as while its gateway stands still", async () => {
    const other = await lab.addRelay();
    const subscribe = other.bus.subscribe.bind(other.bus);
    // Longer than a gateway keeps a stream without readers.
    other.bus.subscribe = async (...asked) => {
      await delay(6_000);
      return subscribe(...asked);
    };
    const reading = await resume(other, writer, -1);
    await delay(6_500);
    const whole = wholeStream(3);
    for (const record of whole) await writer.write(record);
    expect(await reading.done).toEqual(whole);
  });

  it("is the log, record by record and byte by byte, and ends with its final record", async () => {
    const whole = wholeStream(500);
    const reading = live();
    for (const record of whole) await writer.write(record);
    expect(await reading.done).toEqual(whole);
    expect(reading.indexes).toEqual(whole.map((_, i) => i));
  });

  it("shows each record as it comes: 100 waits for silence would take longer than a test may", async () => {
    const whole = wholeStream(100);
    const reading = live();
    for (const [i, record] of whole.entries()) {
      await writer.write(record);
      await until(() => reading.seen.length === i + 1);
    }
    expect(await reading.done).toEqual(whole);
  });

  it("is shared by its readers: one subscription, and the late one gets all", async () => {
    const whole = wholeStream(300);
    const early = Array.from({ length: 20 }, () => live());
    for (const record of whole.slice(0, 200)) await writer.write(record);
    await until(() => early.every(({ seen }) => seen.length === 200));
    const late = [live(), live(150), await resume(gateway, writer, 9)];
    for (const record of whole.slice(200)) await writer.write(record);
    for (const { done } of early) expect(await done).toEqual(whole);
    const [all, some, others] = await Promise.all(late.map(({ done }) => done));
    expect([all, some, others]).toEqual([whole, whole.slice(150), whole.slice(10)]);
  });

  it("ends at once when its reader leaves, and the next one goes on", async () => {
    const whole = wholeStream(10);
    const reading = live();
    await writer.write(...whole.slice(0, 5));
    await until(() => reading.seen.length === 5);
    reading.leave();
    expect(await reading.done).toEqual(whole.slice(0, 5));
    await writer.write(...whole.slice(5));
    expect(await (await resume(gateway, writer, 4)).done).toEqual(whole.slice(5));
  });
});

describe("reconnecting", () => {
  it("at every index, finished or not, gives the rest of the list", async () => {
    const count = 80;
    const whole = wholeStream(count);
    for (let have = 0; have < count; have++) {
      const reading = await resume(gateway, writer, have - 1);
      await writer.write(whole[have] ?? "");
      await until(() => reading.seen.length === 1);
      reading.leave();
      expect(await reading.done).toEqual(whole.slice(have, have + 1));
    }
    const other = await lab.addRelay();
    for (let have = 0; have <= count; have++) {
      const rests = await Promise.all([gateway, other].map((one) => resume(one, writer, have - 1)));
      for (const { done } of rests) expect(await done).toEqual(whole.slice(have));
    }
  });

  it("by 500 readers at once costs a few reads of the log", async () => {
    const whole = wholeStream(100);
    await writer.write(...whole.slice(0, 90));
    const before = await lab.scriptCalls();
    const readings = await Promise.all(Array.from({ length: 500 }, (_, i) => resume(gateway, writer, (i % 80) - 1)));
    await until(() => readings.every(({ seen }, i) => seen.length === 90 - (i % 80)));
    expect((await lab.scriptCalls()) - before).toBeLessThan(60);
    await writer.write(...whole.slice(90));
    for (const [i, { done }] of readings.entries()) expect(await done).toEqual(whole.slice(i % 80));
  });
});

describe("Redis out of this gateway's reach", () => {
  it("is waited for, while messages that continue the stream are shown", async () => {
    const whole = wholeStream(40);
    const reading = live();
    await writer.write(...whole.slice(0, 10));
    await until(() => reading.seen.length === 10);
    lab.fleet.lines.gatewayRedis.blackHole("toServer", "toClient");
    try {
      for (const record of whole.slice(10, 20)) await writer.write(record);
      writer.publish(recordAt(25), "", "{}", JSON.stringify({ index: 20 }));
      await until(() => reading.seen.length === 20);
    } finally {
      lab.fleet.lines.gatewayRedis.heal();
    }
    await until(() => gateway.redis.status === "ready");
    for (const record of whole.slice(20)) await writer.write(record);
    expect(await reading.done).toEqual(whole);
  });

  it("does not take a record for forged that was appended after the log was read, and heard before the reply", async () => {
    const whole = wholeStream(3);
    const reading = live();
    await writer.write(...whole.slice(0, 1));
    await until(() => reading.seen.length === 1);
    const key = logKey(writer.address);
    let looks = 0;
    const monitor = await lab.redis.monitor();
    monitor.on("monitor", (_, command: string[]) => {
      if (/^evalsha$/i.test(command[0] ?? "") && command.includes(key)) looks++;
    });
    try {
      lab.fleet.lines.gatewayRedis.delay(200);
      lab.fleet.lines.gatewayRedis.resetAll();
      await until(() => gateway.redis.status !== "ready");
      writer.publish("");
      await until(() => looks >= 1);
      lab.fleet.lines.gatewayRedis.blackHole("toClient");
      await writer.write(...whole.slice(1, 2));
      await until(() => reading.seen.length === 2);
      lab.fleet.lines.gatewayRedis.heal();
      await Promise.race([until(() => looks >= 2), reading.done]);
    } finally {
      lab.fleet.lines.gatewayRedis.heal();
      monitor.disconnect();
    }
    await writer.write(...whole.slice(2));
    expect(await reading.done).toEqual(whole);
  });

  it("lets a forger be found out when it is back", async () => {
    const reading = live();
    await writer.write(recordAt(0));
    await until(() => reading.seen.length === 1);
    lab.fleet.lines.gatewayRedis.blackHole("toServer", "toClient");
    try {
      const forged = recordAt(1, { choices: [{ index: 0, text: "forged", tokens: [1] }] });
      writer.publish(forged);
      await until(() => reading.seen.length === 2);
      await writer.append(recordAt(1));
    } finally {
      lab.fleet.lines.gatewayRedis.heal();
    }
    await expect(reading.done).rejects.toMatchObject({ code: "state_lost" });
  });
});

describe("a request that ended otherwise", () => {
  const expired = { kind: "error", code: "expired", message: "Request timeout expired" } as const;

  it("has a final record made of its outcome, the same at every gateway", async () => {
    const other = await lab.addRelay();
    const { writer } = await foreignRequest(lab);
    await writer.write(recordAt(0), recordAt(1));
    const before = await resume(gateway, writer, -1);
    await until(() => before.seen.length === 2);
    await writer.give(expired);
    const made = `{"index":2,"choices":[],"final":true,"reason":"expired","error":{"code":"expired","message":"Request timeout expired"}}`;
    expect(await before.done).toEqual([recordAt(0), recordAt(1), made]);
    for (const one of [gateway, other]) {
      expect(await (await resume(one, writer, 0)).done).toEqual([recordAt(1), made]);
      expect(await (await resume(one, writer, 1)).done).toEqual([made]);
      expect(await (await resume(one, writer, 2)).done).toEqual([]);
      await expect(resume(one, writer, 3)).rejects.toMatchObject({ code: "ahead_of_log" });
    }
  });

  it("is one record if its model has no stream", async () => {
    const done = await foreignRequest(lab, "lstm");
    await done.writer.give({ kind: "result", body: Buffer.from("tensors") });
    expect(await (await resume(gateway, done.writer, -1)).done).toEqual([
      '{"index":0,"choices":[],"final":true,"reason":"finished"}',
    ]);
    expect(await (await resume(gateway, done.writer, 0)).done).toEqual([]);
    const failed = await foreignRequest(lab, "lstm");
    const reading = await resume(gateway, failed.writer, -1);
    await failed.writer.give({ kind: "error", code: "model_error", message: "no" });
    expect(await reading.done).toEqual([
      '{"index":0,"choices":[],"final":true,"reason":"error","error":{"code":"model_error","message":"no"}}',
    ]);
  });

  const lateRecord = (index: number, message: string): object => ({
    index,
    choices: [],
    final: true,
    reason: "expired",
    error: { code: "expired", message },
  });

  it("without a token by its deadline ends with an error", async () => {
    const late = await gateway.generate(asked({ deadlineMs: 300 }));
    const reading = listen((signal) => late.read(0, signal));
    const [only, ...more] = await reading.done;
    expect([JSON.parse(only ?? ""), more]).toEqual([lateRecord(0, "Request timeout expired"), []]);
  });

  it("without a token by its deadline ends with an error, also where the reply to its admission was lost", async () => {
    const lost = lab.fleet.lines.gatewayRedis.loseReply(1);
    const late = await gateway.generate(asked({ deadlineMs: 300 }));
    expect(await lost).toBe(true);
    const [only, ...more] = await listen((signal) => late.read(0, signal)).done;
    expect([JSON.parse(only ?? ""), more]).toEqual([lateRecord(0, "Request timeout expired"), []]);
  });

  it("with a token by its deadline goes on to its end", async () => {
    const late = await gateway.generate(asked({ deadlineMs: 300 }));
    const later = await gateway.generate(asked({ deadlineMs: 300 }));
    const reading = listen((signal) => late.read(0, signal));
    const writer = new Writer(lab, late.id);
    // The gateway does not hear of this stream's token: only Redis knows that the stream has begun.
    await writer.append(recordAt(0));
    await listen((signal) => later.read(0, signal)).done;
    await writer.write(recordAt(1), lastRecord(2));
    expect(await reading.done).toEqual([recordAt(0), recordAt(1), lastRecord(2)]);
  });

  it("that is not finished by the deadline of the whole answer ends with an error, where it has one", async () => {
    const spec = { ...asked().spec, restMs: 200 };
    const late = await gateway.generate(asked({ deadlineMs: 300, spec }));
    const reading = listen((signal) => late.read(0, signal));
    await new Writer(lab, late.id).write(recordAt(0));
    const [first, last] = await reading.done;
    expect([first, JSON.parse(last ?? "")]).toEqual([
      recordAt(0),
      lateRecord(1, "the answer was not finished within its total_timeout"),
    ]);
  });

  it("that was cancelled says so", async () => {
    const reading = live();
    await writer.write(recordAt(0));
    await until(() => reading.seen.length === 1);
    await stream.cancel();
    await stream.cancel();
    expect(JSON.parse((await reading.done)[1] ?? "")).toMatchObject({ index: 1, final: true, reason: "cancelled" });
  });
});

describe("a stream that cannot be read", () => {
  it("is refused before anything is shown, and never silently begun from its start", async () => {
    await writer.write(...wholeStream(5));
    await expect(resume(gateway, writer, 5)).rejects.toMatchObject({ code: "ahead_of_log" });
    expect(await (await resume(gateway, writer, 4)).done).toEqual([]);
    const { writer: open } = await foreignRequest(lab);
    await open.write(recordAt(0));
    await expect(resume(gateway, open, 1)).rejects.toMatchObject({ code: "ahead_of_log" });
    const nobody = new Writer(lab, "nobody.0.1.talker");
    await expect(resume(gateway, nobody, -1)).rejects.toMatchObject({ code: "unknown_request" });
    await expect(resume(gateway, nobody, 3)).rejects.toMatchObject({ code: "resume_window_passed" });
    await writer.destroy("log");
    await expect(resume(await lab.addRelay(), writer, -1)).rejects.toMatchObject({ code: "resume_window_passed" });
  });

  it("ends with an error where its log is lost under its readers", async () => {
    const reading = live();
    await writer.write(recordAt(0), recordAt(1));
    await until(() => reading.seen.length === 2);
    await writer.destroy("log", "outcome");
    await expect(reading.done).rejects.toMatchObject({ code: "state_lost" });
    expect(reading.seen).toEqual([recordAt(0), recordAt(1)]);
  });

  it("is unavailable while Redis is away", async () => {
    lab.fleet.lines.gatewayRedis.blackHole("toServer", "toClient");
    try {
      const other = await foreignRequest(lab);
      await expect(resume(gateway, other.writer, -1)).rejects.toMatchObject({ code: "unavailable" });
    } finally {
      lab.fleet.lines.gatewayRedis.heal();
      await until(() => gateway.redis.status === "ready");
    }
  });
});

describe("readers that stop reading", () => {
  it("hold a page each, however long the stream grows", async () => {
    const text = "x".repeat(4_000);
    const records = Array.from({ length: 1_000 }, (_, i) =>
      recordAt(i, { choices: [{ index: 0, text, tokens: [1] }] }),
    );
    const readers = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const cursor = await Cursor.open(gateway.relay, writer.address, 0);
        return cursor.pages(new AbortController().signal);
      }),
    );
    await writer.write(...records.slice(0, 1));
    for (const reader of readers) expect((await reader.next()).value).toMatchObject([{ index: 0 }]);
    const before = heldBytes();
    for (let i = 1; i < records.length; i += 10) await writer.write(...records.slice(i, i + 10));
    const pages = await Promise.all(readers.map((reader) => reader.next()));
    // A full copy for each reader would be 800 MB.
    expect(heldBytes() - before).toBeLessThan(64 << 20);
    for (const [i, reader] of readers.entries()) {
      const indexes: number[] = [];
      for (let page = pages[i]?.value; page && indexes.length < 70; page = (await reader.next()).value ?? undefined) {
        indexes.push(...page.map(({ index }) => index));
      }
      expect(indexes).toEqual(indexes.map((_, at) => at + 1));
      await reader.return();
    }
    await until(() => gateway.relay.size < 20);
  });
});

describe("the time until which a stream is wanted", () => {
  it("is moved when a reader arrives", async () => {
    const key = logKey(writer.address);
    expect(await lab.redis.exists(key)).toBe(0);
    const admitted = Number((await writer.fields())["wanted"]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const reading = await resume(await lab.addRelay(), writer, -1);
    await until(async () => Number((await writer.fields())["wanted"]) > admitted);
    reading.leave();
    await reading.done;
  });

  it("is moved again and again while somebody reads, and not after", async () => {
    const impatient = await lab.addRelay(600);
    const short = await impatient.generate(asked());
    const own = new Writer(lab, short.id);
    const wanted = async () => Number((await own.fields())["wanted"]);
    const reading = listen((signal) => short.read(0, signal));
    for (let rounds = 0, last = await wanted(); rounds < 3; rounds++) {
      await until(async () => (await wanted()) > last);
      last = await wanted();
    }
    reading.leave();
    await reading.done;
    await until(async () => (await wanted()) < Date.now() - 1_000);
  });

  it("is moved once more when the last reader leaves: the grace period begins then", async () => {
    const wanted = async () => Number((await writer.fields())["wanted"]);
    const readings = [live(), live()];
    await writer.write(recordAt(0));
    await until(() => readings.every(({ seen }) => seen.length === 1));
    const admitted = await wanted();
    for (const reading of readings) reading.leave();
    await Promise.all(readings.map(({ done }) => done));
    await until(async () => (await wanted()) > admitted);
  });

  it("is moved as soon as Redis is back where the last reader left meanwhile", async () => {
    const reading = live();
    await writer.write(recordAt(0));
    await until(() => reading.seen.length === 1);
    const { wanted: admitted } = await writer.fields();
    lab.fleet.lines.gatewayRedis.delay(100);
    lab.fleet.lines.gatewayRedis.resetAll();
    await until(() => gateway.redis.status !== "ready");
    reading.leave();
    await reading.done;
    lab.fleet.lines.gatewayRedis.heal();
    await until(async () => Number((await writer.fields())["wanted"]) > Number(admitted));
  });

  it("is not set for a request in the background", async () => {
    const background = await gateway.generate(asked({ background: true }));
    const own = new Writer(lab, background.id);
    expect((await own.fields())["wanted"]).toBeUndefined();
    await own.write(...wholeStream(3));
    expect(await listen((signal) => background.read(0, signal)).done).toEqual(wholeStream(3));
    expect((await own.fields())["wanted"]).toBeUndefined();
  });
});

describe("an Idempotency-Key", () => {
  it("leads a retry at any gateway to the same stream", async () => {
    const request = asked({ idempotencyKey: `key ${stream.id}` });
    const other = await lab.addRelay();
    const [first, second] = [await gateway.generate(request), await other.generate(request)];
    expect(second.id).toBe(first.id);
    const readings = [first, second].map((one) => listen((signal) => one.read(0, signal)));
    const whole = wholeStream(20);
    for (const record of whole) await new Writer(lab, first.id).write(record);
    for (const { done } of readings) expect(await done).toEqual(whole);
    expect(await listen((signal) => second.read(0, signal)).done).toEqual(whole);
    await expect(other.generate({ ...request, deadlineMs: 1_234 })).rejects.toMatchObject({
      code: "idempotency_mismatch",
    });
  });
});
