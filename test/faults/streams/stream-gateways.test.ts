import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { holderOf, readStored, slowDown } from "../../support/streams/stored.js";
import { askFor } from "../../support/streams/ask.js";
import { StreamLab } from "../../support/streams/lab.js";
import { Reader } from "../../support/streams/reader.js";
import { subscribeTo } from "../../support/streams/subject.js";
import { submitInBackground } from "../../support/streams/front-doors.js";
import { readWebSocket } from "../../support/streams/websocket.js";
import { nth, repeatedly } from "../pace.js";
import { seed, streamScale } from "../scale.js";
import { expectUndisturbed } from "../verdict.js";

const { running, fewerRunning, different, gatewayDrains, tokens, timeoutMs } = streamScale;
/** Tokens enough that the stream outlasts its gateway: the test cancels the stream. */
const MANY = 4_000;
/** A worker that takes over a stream without capture publishes this many of its records again. */
const PUBLISHED_AGAIN = 16;
let lab: StreamLab;

beforeAll(async () => {
  // A stopping gateway holds streams without ids until they end, which takes longer than this.
  const fleet = { gateways: 2, workers: 2, models: ["gen-mha"], env: { BATON_LINGER_MS: "200" } };
  lab = await StreamLab.open({ seed, fleet, asks: { count: different, model: "gen-mha", tokens } });
}, timeoutMs);
afterAll(() => lab.close());

describe("gateways killed with SIGKILL under streams", () => {
  it(
    "cost their clients a reconnection: another gateway goes on after the last record that they have",
    async () => {
      const findings = await lab.experiment({
        name: "stream-gateway-killed",
        running: 2 * running,
        breaking: ({ gateways }, ended) =>
          repeatedly(streamScale.gatewayKills, 700, async (i) => {
            // Clients read streams again since the last kill, so the next kill cuts some.
            await ended.reach(ended.count + running);
            await nth(gateways, i).member.restart();
          }),
      });
      expectUndisturbed("stream-gateway-killed", findings);
      expect(findings.figures.reconnects).toBeGreaterThan(0);
    },
    timeoutMs,
  );
});

describe("SIGTERM to a gateway under streams", () => {
  it(
    "ends those that can go on elsewhere, and holds the others until they end: no client is cut",
    async () => {
      const exits: (number | null)[] = [];
      const handedOver: boolean[] = [];
      const findings = await lab.experiment({
        name: "stream-gateway-drained",
        running: fewerRunning,
        breaking: ({ gateways }) =>
          repeatedly(gatewayDrains, 400, async (i) => {
            const [{ member, url }, other] = [nth(gateways, i), nth(gateways, i + 1)];
            const id = await submitInBackground(url, askFor(MANY, "a long tale", seed + i));
            const reader = new Reader(url, id);
            await reader.reach(1);
            exits.push((await member.terminate(30_000)).code);
            const { records, end } = await reader.ended;
            const rest = new Reader(other.url, id, records.length - 1);
            await rest.reach(1);
            handedOver.push(end.kind === "ended");
            // 409: the stop took so long that the stream has ended by itself.
            const cancelled = await fetch(`${other.url}/v2/requests/${id}`, { method: "DELETE" });
            expect([204, 409]).toContain(cancelled.status);
            const all = await new Reader(other.url, id).ended;
            expect([...records, ...(await rest.ended).records]).toEqual(all.records);
            await member.start();
          }),
      });
      expectUndisturbed("stream-gateway-drained", findings);
      expect(exits).toEqual(Array(gatewayDrains).fill(0));
      expect(findings.figures.cutWhileReading).toBe(0);
      expect(handedOver).toEqual(Array(gatewayDrains).fill(true));
    },
    timeoutMs,
  );
});

describe("a stream in the background whose gateway and then worker are killed", () => {
  it(
    "is read in full by SSE, by WebSocket and, from where it listens, by NATS: the same records everywhere",
    async () => {
      const { fleet, redis } = lab;
      const [first, second] = [nth(fleet.gateways, 0), nth(fleet.gateways, 1)];
      const ask = {
        name: "background",
        model: "gen-mha",
        prompt: "the baton",
        parameters: { max_tokens: 1_200, temperature: 1, seed },
      };
      await lab.learn([ask]);
      const reference = lab.referenceOf(ask);

      slowDown(fleet);
      const id = await submitInBackground(first.url, ask);
      const subscriber = await subscribeTo(fleet.nats.url, id);
      await first.member.kill();
      const bySse = new Reader(second.url, id);
      await bySse.reach(50);
      const fromHere = bySse.records.length;
      const byWebSocket = readWebSocket(second.url, id, fromHere - 1);
      const holder = await holderOf(redis, fleet.workers, id);
      await holder.kill();
      fleet.lines.workerRedis.heal();
      await holder.start();
      const { records } = await bySse.ended;
      const late = await readWebSocket(second.url, id);
      const live = await byWebSocket;
      await first.member.start();
      await fleet.whenServing();
      const elsewhere = await new Reader(first.url, id).ended;

      const { log, takenAt } = await readStored(redis, id);
      console.log(
        `background stream of ${log.length} records: taken over at ${takenAt}, on NATS ${subscriber.records.length}`,
      );
      expect(takenAt).toBeGreaterThan(0);
      expect(takenAt).toBeLessThan(log.length);
      expect(log).toEqual(reference);
      expect(records).toEqual(log);
      expect(elsewhere.records).toEqual(log);
      expect(late).toEqual({ records: log, end: { kind: "ended" } });
      expect(live).toEqual({ records: log.slice(fromHere), end: { kind: "ended" } });
      const heard = subscriber.records.map((record) => (JSON.parse(record) as { index: number }).index);
      expect(subscriber.records).toEqual(heard.map((index) => log[index]));
      const distinct = [...new Set(heard)];
      expect(distinct).toEqual([...distinct].sort((a, b) => a - b));
      // The dead worker's newest records may be lost, so the next worker publishes them again, and
      // no earlier record.
      const again = (takenAt ?? 0) - PUBLISHED_AGAIN;
      const repeated = heard.filter((index, i) => heard.indexOf(index) < i);
      expect(repeated.filter((index) => index < again || index >= (takenAt ?? 0))).toEqual([]);
      expect(distinct.filter((index) => index >= again)).toHaveLength(log.length - again);
      await subscriber.close();
      expect(await lab.leftOver()).toEqual([]);
    },
    timeoutMs,
  );
});
