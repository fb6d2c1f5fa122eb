import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readDurably, type DurableReadingPlan } from "../../support/streams/durable-reader.js";
import { StreamLab } from "../../support/streams/lab.js";
import { Reader } from "../../support/streams/reader.js";
import { submitInBackground } from "../../support/streams/front-doors.js";
import { holderOf, readStored, slowDown } from "../../support/streams/stored.js";
import { until } from "../../support/until.js";
import { readFromNats } from "../../support/streams/nats-reader.js";
import { nth } from "../pace.js";
import { seed, streamScale } from "../scale.js";

const { timeoutMs } = streamScale;
/** A frozen worker is not declared dead before all readers have come. */
const FROZEN_MS = 60_000;
let lab: StreamLab;

beforeAll(async () => {
  const fleet = { gateways: 2, workers: 2, models: ["gen-mha"], leaseMs: FROZEN_MS };
  lab = await StreamLab.open({ seed, fleet });
}, timeoutMs);
afterAll(() => lab.close());

describe("a request whose worker and then a gateway are killed while many read it", () => {
  it(
    "is the same by SSE, for the Durable Streams client in both live modes, for plain NATS clients, and afterwards",
    async () => {
      const { fleet, redis } = lab;
      const [first, second] = [nth(fleet.gateways, 0), nth(fleet.gateways, 1)];
      const parameters = { max_tokens: 1_200, temperature: 1, seed };
      const ask = { name: "durable", model: "gen-mha", prompt: "the baton", parameters };
      await lab.learn([ask]);
      slowDown(fleet);
      const id = await submitInBackground(second.url, ask);
      const path = `/v2/requests/${id}/stream`;
      const same = () => first.url + path;
      const moving = (session: number) => nth(fleet.gateways, session).url + path;

      const bySse = new Reader(second.url, id);
      await bySse.reach(50);
      // While the worker is frozen, the stream stops in the middle, and all readers come there.
      const holder = await holderOf(redis, fleet.workers, id);
      holder.freeze();
      fleet.lines.workerRedis.heal();
      const pieces: number[] = [];
      const read = (i: number, plan: Omit<DurableReadingPlan, "onPiece">) =>
        readDurably({ ...plan, onPiece: (count) => (pieces[i] = count) });
      const listening = read(0, { url: same, live: "sse", format: "json" });
      const moved = read(1, { url: moving, live: "sse", format: "json" });
      const hearing = read(2, { url: same, live: "sse", format: "text" });
      const polling = read(3, { url: same, live: "long-poll", format: "json" });
      const reading = read(4, { url: same, live: "long-poll", format: "text" });
      const hears = { natsUrl: fleet.nats.url, gateway: second.url, id };
      const subscribed = await readFromNats(hears);
      const forgetful = await readFromNats({ ...hears, loses: (index) => index % 100 === 7 });
      // The first piece holds the earlier records; an event stream then begins with an empty piece.
      await until(() => [2, 2, 2, 1, 1].every((count, i) => (pieces[i] ?? 0) >= count));
      await holder.kill();
      await first.member.kill();
      const late = readDurably({ url: () => second.url + path, live: "sse", format: "json" });
      await Promise.all([holder.start(), first.member.start()]);
      const { records, end } = await bySse.ended;
      expect(end).toEqual({ kind: "ended" });

      const { log, takenAt } = await readStored(redis, id);
      expect(log).toEqual(lab.referenceOf(ask));
      expect(takenAt).toBeGreaterThan(0);
      expect(records).toEqual(log);
      const parsed = log.map((json) => JSON.parse(json) as { choices: { text: string }[] });
      const text = parsed.map(({ choices }) => choices[0]?.text ?? "").join("");
      const all = await Promise.all([polling, listening, moved, late]);
      for (const one of all) expect(one.records).toEqual(parsed);
      const texts = await Promise.all([reading, hearing]);
      for (const one of texts) expect(one.text).toBe(text);
      const told = [...all, ...texts].map(({ sessions, repeated }) => `${sessions} sessions, ${repeated} repeated`);
      console.log(`a stream of ${log.length} records, taken over at ${takenAt}: ${told.join("; ")}`);
      // A cut event stream makes the application begin anew; the client repeats requests by itself.
      for (const one of [all[1], all[2], texts[1]]) expect(one?.sessions).toBeGreaterThan(1);
      for (const one of [all[0], texts[0]]) expect(one?.repeated).toBeGreaterThan(0);
      for (const one of [all[1], all[2], texts[1]]) expect(one?.sessions).toBeGreaterThan(1);

      // Records that the dead worker had in the log and not yet on NATS: the readers noticed the
      // gap and read these records at a gateway.
      const [byNats, withGaps] = await Promise.all([subscribed.whole, forgetful.whole]);
      expect([byNats.records, withGaps.records]).toEqual([log, log]);
      console.log(
        `by NATS: ${[byNats, withGaps].map(({ heard, looks }) => `${heard} heard, ${looks} looks`).join("; ")}`,
      );
      for (const one of [byNats, withGaps]) expect(one.heard).toBeGreaterThan(0);
      expect(withGaps.looks).toBeGreaterThan(1);

      for (const { url } of fleet.gateways) {
        const whole = { url: () => url + path, live: false } as const;
        expect(await readDurably({ ...whole, format: "json" })).toMatchObject({ records: parsed, sessions: 1 });
        expect((await readDurably({ ...whole, format: "text" })).text).toBe(text);
        for (const live of ["long-poll", "sse"] as const) {
          expect((await readDurably({ ...whole, live, format: "json" })).records).toEqual(parsed);
        }
      }
      expect(await lab.leftOver()).toEqual([]);
    },
    timeoutMs,
  );
});
