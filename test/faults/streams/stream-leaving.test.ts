import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { seededRandom } from "../../support/fleet/random.js";
import { heldTogether } from "../../support/brokers/resources.js";
import { allKeys } from "../../support/sequences/floor.js";
import { askFor } from "../../support/streams/ask.js";
import { StreamLab } from "../../support/streams/lab.js";
import { readAndLeave, sendAndLeave, type LeavingManner } from "../../support/streams/leaving.js";
import { newOutcomes, type Ended, readStored } from "../../support/streams/stored.js";
import { Reader } from "../../support/streams/reader.js";
import { submitInBackground } from "../../support/streams/front-doors.js";
import { nth } from "../pace.js";
import { seed, streamScale } from "../scale.js";

const { timeoutMs } = streamScale;
const GRACE_MS = 2_000;
const SLOTS = 64;
let lab: StreamLab;
let known: Set<string>;

beforeAll(async () => {
  const env = { BATON_RECONNECT_GRACE_MS: String(GRACE_MS), BATON_GENERATOR_SLOTS: String(SLOTS) };
  const fleet = { gateways: 2, workers: 1, models: ["gen-mha"], env };
  lab = await StreamLab.open({ seed, fleet, asks: { count: 4, model: "gen-mha", tokens: [10, 20] } });
  known = new Set(await allKeys(lab.redis, "out:*"));
}, timeoutMs);
afterAll(() => lab.close());

const gateway = (i: number) => nth(lab.fleet.urls, i);
const asking = (maxTokens: number) => askFor(maxTokens, "over and over", seed);
/** Takes minutes at the pace of a test, so no test sees its end. */
const endless = asking(4_000);

function tally(all: readonly Ended[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { how, background } of all) {
    const name = `${background ? "background" : "attended"} ${how}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

describe("a client that leaves at the instant of admission", () => {
  it(
    "leaves no request without an end: cancelled if somebody had to be there for it, else done",
    async () => {
      const each = 24;
      const leaving = Array.from({ length: each }, (_, i) => [
        sendAndLeave(gateway(i), endless, "completions"),
        sendAndLeave(gateway(i), endless, "generate_stream"),
        sendAndLeave(gateway(i), endless, "whole"),
        sendAndLeave(gateway(i), asking(10), "events"),
        readAndLeave(gateway(i), endless, "completions", { after: 0 }),
        readAndLeave(gateway(i), endless, "generate_stream", { after: 0 }),
      ]);
      await Promise.all(leaving.flat());
      expect(await lab.leftOver()).toEqual([]);
      const counts = tally(await newOutcomes(lab.redis, known));
      console.log(`left at admission, seed ${seed}: ${JSON.stringify(counts)}`);
      expect(Object.keys(counts).sort()).toEqual(["attended cancelled", "background result"]);
      // All requests with a head were admitted, and so were a few others.
      expect(counts["attended cancelled"]).toBeGreaterThan(2 * each);
    },
    timeoutMs,
  );
});

describe("a client that leaves in mid-stream", () => {
  it(
    "has its stream cancelled after the grace period; one in the background, detached, or read again in time runs on",
    async () => {
      // With 40 ms each way, a worker makes at most eight iterations in a round trip: these streams
      // outlast the grace period on any machine.
      lab.fleet.lines.workerRedis.delay(40);
      const long = asking(400);
      const detach = async (id: string) => {
        const answer = await fetch(`${gateway(0)}/v2/requests/${id}/detach`, { method: "POST" });
        expect(answer.status).toBe(204);
      };
      const comeBack = async () => {
        const id = await readAndLeave(gateway(0), long, "completions", { after: 5 });
        return { id, records: (await new Reader(gateway(1), String(id), 4).ended).records };
      };
      const glance = async () => {
        const id = await submitInBackground(gateway(0), long);
        await new Reader(gateway(1), id, -1, 5).ended;
        return id;
      };
      const [left, detached, back, background] = await Promise.all([
        readAndLeave(gateway(0), endless, "completions", { after: 5 }),
        readAndLeave(gateway(1), long, "generate_stream", { after: 5, last: detach }),
        comeBack(),
        glance(),
      ]);
      expect(await lab.leftOver()).toEqual([]);
      lab.fleet.lines.workerRedis.heal();

      const stored = async (id: string | undefined) => (await readStored(lab.redis, String(id))).log;
      const [cancelled, whole] = [await stored(left), await stored(back.id)];
      console.log(`left in mid-stream: ${cancelled.length - 5} of ${4_000 - 5} tokens computed for nobody`);
      expect(cancelled.at(-1)).toMatch(/"final":true.*"reason":"cancelled"/);
      expect(cancelled.length).toBeLessThan(4_000);
      expect(whole.length).toBe(400);
      expect(back.records).toEqual(whole.slice(5));
      expect(await stored(background)).toEqual(whole);
      expect(await stored(detached)).toEqual(whole);
      expect(tally(await newOutcomes(lab.redis, known))).toEqual({
        "attended cancelled": 1,
        "attended result": 1,
        "background result": 2,
      });
    },
    timeoutMs,
  );
});

describe("a storm of streams that are opened and dropped", () => {
  it(
    "frees every slot and every connection",
    async () => {
      const { fleet, redis } = lab;
      const random = seededRandom(seed).fork("storm");
      const before = await held();
      const manners: readonly LeavingManner[] = ["completions", "generate_stream", "whole", "events"];
      const drop = async (i: number) => {
        const patience = random.between(0, 3);
        if (patience > 0) {
          await readAndLeave(gateway(i), endless, i % 2 === 0 ? "completions" : "generate_stream", {
            after: patience,
          });
        } else if (i % 3 === 0) {
          const id = await submitInBackground(gateway(i), endless);
          const answer = await fetch(`${gateway(i + 1)}/v2/requests/${id}`, { method: "DELETE" });
          if (answer.status !== 204) throw new Error(`a cancellation was answered with ${answer.status}`);
        } else await sendAndLeave(gateway(i), asking(20), random.pick(manners));
      };
      let next = 0;
      const one = async () => {
        while (next < streamScale.cancelled) await drop(next++);
      };
      await Promise.all(Array.from({ length: 2 * SLOTS }, one));
      expect(await lab.leftOver()).toEqual([]);
      const counts = tally(await newOutcomes(redis, known));
      console.log(`storm, seed ${seed}: ${JSON.stringify({ counts, before, after: await held() })}`);
      expect(Object.keys(counts).filter((how) => !/ (cancelled|result)$/.test(how))).toEqual([]);
      expect(counts["attended cancelled"]).toBeGreaterThan(streamScale.cancelled / 4);
      expect((await held()).descriptors).toBeLessThan(before.descriptors + SLOTS);

      // As many streams as there are slots run at the same time. With a leaked slot, a stream would
      // wait for the end of another.
      const ids = await Promise.all(Array.from({ length: SLOTS }, (_, i) => submitInBackground(gateway(i), endless)));
      const readers = ids.map((id, i) => new Reader(gateway(i), id));
      await Promise.all(readers.map((reader) => reader.reach(1)));
      expect(readers.filter(({ records }) => records.length === 4_000)).toEqual([]);
      await Promise.all(ids.map((id, i) => fetch(`${gateway(i)}/v2/requests/${id}`, { method: "DELETE" })));
      for (const { records } of await Promise.all(readers.map(({ ended }) => ended))) {
        expect(records.at(-1)).toMatch(/"reason":"cancelled"/);
      }
      expect(await lab.leftOver()).toEqual([]);
      await newOutcomes(redis, known);

      function held() {
        const members = [...fleet.gateways.map(({ member }) => member), ...fleet.workers];
        return heldTogether(members.map(({ process }) => process.pid));
      }
    },
    timeoutMs,
  );
});
