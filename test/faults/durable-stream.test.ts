import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readDurably } from "../support/streams/durable-reader.js";
import { StreamLab } from "../support/streams/lab.js";
import { Reader } from "../support/streams/reader.js";
import { submitInBackground } from "../support/streams/front-doors.js";
import { holderOf, readStored } from "../support/streams/stored.js";
import { nth } from "./pace.js";
import { seed, streamScale } from "./scale.js";

const { timeoutMs } = streamScale;
let lab: StreamLab;

beforeAll(async () => {
  lab = await StreamLab.open({ seed, fleet: { gateways: 2, workers: 2, models: ["gen-mha"], direct: true } });
}, timeoutMs);
afterAll(() => lab.close());

describe("a request that the Durable Streams client reads while its worker and then its gateway are killed", () => {
  it(
    "is the same in both live modes, at the restarted gateway and at another one, and afterwards",
    async () => {
      const { fleet, redis } = lab;
      const [first, second] = [nth(fleet.gateways, 0), nth(fleet.gateways, 1)];
      const parameters = { max_tokens: 1_200, temperature: 1, seed };
      const ask = { name: "durable", model: "gen-mha", prompt: "the baton", parameters };
      await lab.learn([ask]);
      const id = await submitInBackground(second.url, ask);
      const path = `/v2/requests/${id}/stream`;
      const same = () => first.url + path;
      const moving = (session: number) => nth(fleet.gateways, session).url + path;

      const polling = readDurably({ url: same, live: "long-poll", format: "json" });
      const listening = readDurably({ url: same, live: "sse", format: "json" });
      const moved = readDurably({ url: moving, live: "sse", format: "json" });
      const reading = readDurably({ url: same, live: "long-poll", format: "text" });
      const hearing = readDurably({ url: same, live: "sse", format: "text" });
      const bySse = new Reader(second.url, id);
      await bySse.reach(50);
      const late = readDurably({ url: () => second.url + path, live: "sse", format: "json" });
      const holder = await holderOf(redis, fleet.workers, id);
      // Nobody generates until the worker is found dead, so the gateway dies in mid-stream, too.
      await holder.kill();
      await first.member.kill();
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
      // The event streams were cut, so the application had to begin anew.
      for (const one of [all[1], all[2], texts[1]]) expect(one?.sessions).toBeGreaterThan(1);

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
