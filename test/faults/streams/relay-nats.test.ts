/** A stream has no gap and no duplicate, whatever NATS loses, repeats, delays or invents. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { TokenRecord } from "#shared/contract/generation.js";
import type { OpenStream } from "../../../gateway/stream/open-stream.js";
import { BROKERS_ALONE, StreamLab } from "../../support/streams/lab.js";
import { listen, resume, type Listener, type RelayGateway } from "../../support/streams/relay.js";
import { Writer } from "../../support/streams/writer.js";
import { asked } from "../../fixtures/generation.js";
import { lastRecord, recordAt, wholeStream } from "../../fixtures/token-records.js";
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

describe("NATS", () => {
  it("killed in the middle and restarted loses nothing", async () => {
    const whole = wholeStream(400);
    const reading = live();
    await writeAll(whole, 100, async (i) => {
      if (i === 100) await lab.fleet.nats.kill();
      if (i === 200) await lab.fleet.nats.restart();
    });
    expect(await reading.done).toEqual(whole);
    await until(() => lab.bus.isUp() && gateway.bus.isUp());
  });

  it("down for the whole of a stream makes it slower, not wrong", async () => {
    await lab.fleet.nats.kill();
    try {
      await until(() => !gateway.bus.isUp());
      const late = await gateway.generate(asked());
      const whole = wholeStream(200);
      const reading = listen((signal) => late.read(0, signal));
      await new Writer(lab, late.id).write(...whole.slice(0, 100));
      await until(() => reading.seen.length === 100);
      await new Writer(lab, late.id).write(...whole.slice(100));
      expect(await reading.done).toEqual(whole);
    } finally {
      await lab.fleet.nats.restart();
      await until(() => lab.bus.isUp() && gateway.bus.isUp());
    }
  });

  it("cutting the subscriber off again and again loses nothing", { timeout: 120_000 }, async () => {
    const whole = wholeStream(2_000);
    const reading = live();
    await writeAll(whole, 500, () => void lab.fleet.lines.nats.resetAll());
    expect(await reading.done).toEqual(whole);
    await until(() => gateway.bus.isUp());
  });

  it("losing the very last message is noticed", async () => {
    const whole = wholeStream(5);
    const reading = live();
    await writer.write(...whole.slice(0, 4));
    await until(() => reading.seen.length === 4);
    await writer.append(lastRecord(4));
    expect(await reading.done).toEqual(whole);
  });

  it("may double, reorder, repeat and invent messages: none of it is shown", async () => {
    const whole = wholeStream(60);
    const reading = live();
    for (const [i, record] of whole.entries()) {
      const forgedEnd = JSON.stringify({ index: i, choices: [], final: true, reason: "finished" });
      // None of these messages is in the log: an end here, records beyond it, a very late record,
      // and messages without a record.
      writer.publish(forgedEnd, recordAt(i + 3), forgedAt(i + 9), recordAt(999_999_999), whole[0] ?? "");
      writer.publish("", "{}", "[]", "nonsense", `{"index":${i}`, `{"index":"${i}"}`, Buffer.from([0, 255, 200]));
      writer.publish(`{"index":${i},"choices":[{}]}`, JSON.stringify({ index: i }), `${forgedAt(i)},`);
      await until(() => reading.seen.length === i);
      await writer.append(record);
      writer.publish(record, record, whole[i - 1] ?? "", forgedAt(i));
    }
    await writer.give({ kind: "result", body: Buffer.from("x") });
    expect(await reading.done).toEqual(whole);
  });

  it.each([
    ["in the middle", 5],
    ["just before the end", 58],
    ["instead of the end", 59],
  ])("may carry a forged next record %s: it is found out before the stream has ended", async (_, at) => {
    const whole = wholeStream(60);
    const reading = live();
    for (const [i, record] of whole.entries()) {
      await until(() => reading.seen.length === i);
      if (i === at) {
        writer.publish(forgedAt(i));
        await until(() => reading.seen.length === i + 1);
        break;
      }
      await writer.write(record);
    }
    await writer.write(...whole.slice(at));
    await expect(reading.done).rejects.toMatchObject({ code: "state_lost" });
    expect(reading.seen.some((record) => record.includes('"final":true'))).toBe(false);
    expect(await (await resume(await lab.addRelay(), writer, -1)).done).toEqual(whole);
  });

  it("may carry forged records with no end: they are found out while the stream runs", async () => {
    const reading = live();
    for (let i = 0; i < 1_000; i++) writer.publish(forgedAt(i));
    await expect(reading.done).rejects.toMatchObject({ code: "state_lost" });
    expect(reading.seen.length).toBeLessThanOrEqual(128);
  });

  it("may carry one forged record in a stream that then says nothing: silence finds it out", async () => {
    const reading = live();
    await writer.write(recordAt(0));
    await until(() => reading.seen.length === 1);
    writer.publish(forgedAt(1));
    await expect(reading.done).rejects.toMatchObject({ code: "state_lost" });
  });

  it("is enough for a stream that loses nothing: the log is read now and then", async () => {
    const whole = wholeStream(1_000);
    const reading = live();
    await writer.write(recordAt(0));
    await until(() => reading.seen.length === 1);
    const before = await lab.scriptCalls();
    for (const record of whole.slice(1)) await writer.write(record);
    expect(await reading.done).toEqual(whole);
    expect((await lab.scriptCalls()) - before).toBeLessThan(60);
  });

  it("carries records of every kind: several choices, log probabilities, characters of several bytes", async () => {
    const chance = { id: 1, token: "é", bytes: [195, 169], logprob: -0.5 };
    const deltas = (i: number): TokenRecord["choices"] => [
      { index: 0, text: `"${i}" \\\n\u0007 é 😀`, tokens: [i], logprobs: [{ ...chance, top: [chance] }] },
      { index: 1, text: "", tokens: [] },
    ];
    const whole = [
      ...Array.from({ length: 150 }, (_, i) => recordAt(i, { choices: deltas(i).slice(i % 2) })),
      lastRecord(150),
    ];
    const reading = live();
    for (const record of whole) await writer.write(record);
    expect(await reading.done).toEqual(whole);
  });

  function forgedAt(index: number): string {
    return recordAt(index, { choices: [{ index: 0, text: "forged", tokens: [1] }] });
  }

  it("racing a slow read of the log changes nothing", async () => {
    const whole = wholeStream(300);
    await writer.write(...whole.slice(0, 100));
    lab.fleet.lines.gatewayRedis.delay(50);
    try {
      const readings = [live(), live(50)];
      const opening = resume(gateway, writer, 29);
      await writeAll(whole.slice(100), 1, () => new Promise((resolve) => setTimeout(resolve, 1)));
      expect(await readings[0]?.done).toEqual(whole);
      expect(await readings[1]?.done).toEqual(whole.slice(50));
      expect(await (await opening).done).toEqual(whole.slice(30));
    } finally {
      lab.fleet.lines.gatewayRedis.heal();
    }
  });

  it("whose messages do not reach the gateway is done without", async () => {
    const whole = wholeStream(1_000);
    const reading = live();
    lab.fleet.lines.nats.blackHole("toClient");
    try {
      await writeAll(whole.slice(0, 900), 100, () => undefined);
      await until(() => reading.seen.length === 900);
    } finally {
      lab.fleet.lines.nats.heal();
    }
    await writeAll(whole.slice(900), 100, () => undefined);
    expect(await reading.done).toEqual(whole);
  });

  it("that cannot carry a large record says that there is one, and the gateway reads it from the log", async () => {
    const huge = recordAt(1, { choices: [{ index: 0, text: "x".repeat(2 << 20), tokens: [1] }] });
    const whole = [recordAt(0), huge, recordAt(2), lastRecord(3)];
    const reading = live();
    await writer.write(recordAt(0));
    await writer.append(huge);
    writer.publish("");
    await until(() => reading.seen.length === 2);
    await writer.write(...whole.slice(2));
    const got = await reading.done;
    expect(got.map((record) => record.length)).toEqual(whole.map((record) => record.length));
    expect(got.every((record, i) => record === whole[i])).toBe(true);
  });

  async function writeAll(whole: readonly string[], every: number, between: (i: number) => unknown): Promise<void> {
    for (const [i, record] of whole.entries()) {
      if (i > 0 && i % every === 0) await between(i);
      await writer.write(record);
    }
  }
});
