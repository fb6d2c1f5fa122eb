import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readDurably } from "../../support/streams/durable-reader.js";
import { StreamLab } from "../../support/streams/lab.js";
import { Reader } from "../../support/streams/reader.js";
import { submitInBackground } from "../../support/streams/front-doors.js";
import { holderOf, readStored, slowDown } from "../../support/streams/stored.js";
import { subjectOfLabel, submitLabelled, tokenOf } from "../../support/streams/labels.js";
import { listen, readCaptured, readCapturedOfMany, subscribe, subscription } from "../../support/streams/subscriber.js";
import { readWebSocket } from "../../support/streams/websocket.js";
import { nth } from "../pace.js";
import { seed, streamScale } from "../scale.js";

const { timeoutMs } = streamScale;
const FROZEN_MS = 60_000;
let lab: StreamLab;

beforeAll(async () => {
  const fleet = {
    gateways: 2,
    workers: 2,
    models: ["gen-mha"],
    guarded: true,
    leaseMs: FROZEN_MS,
    env: { BATON_CAPTURE_TTL_MS: "600000" },
  };
  lab = await StreamLab.open({ seed, fleet });
}, timeoutMs);
afterAll(() => lab.close());

const parameters = { max_tokens: 800, temperature: 1, seed };
const parse = (log: readonly string[]) => log.map((json) => JSON.parse(json) as unknown);

describe("a stream whose worker and then a gateway are killed", () => {
  it(
    "is the same for readers at gateways and for those that have NATS alone, live, late and from an index",
    async () => {
      const { fleet, redis } = lab;
      const [first, second] = [nth(fleet.gateways, 0), nth(fleet.gateways, 1)];
      const ask = { name: "subscribed", model: "gen-mha", prompt: "the baton", parameters };
      await lab.learn([ask]);
      // These subscriptions exist before the request.
      const told = await subscribe(first.url, "/v2/subscriptions", { model: "gen-mha" });
      const [plain, socket] = await Promise.all([listen(told), listen(told, "ws")]);
      slowDown(fleet);
      const id = await submitInBackground(first.url, ask);
      const { subject } = await subscription(first.url, id);
      const live = Promise.all([plain.of(subject), socket.of(subject)]);
      const path = `/v2/requests/${id}/stream`;

      const bySse = new Reader(second.url, id);
      const byWebSocket = readWebSocket(second.url, id);
      await bySse.reach(50);
      const polling = readDurably({ url: () => second.url + path, live: "long-poll", format: "json" });
      const listening = readDurably({ url: () => second.url + path, live: "sse", format: "json" });
      const holder = await holderOf(redis, fleet.workers, id);
      holder.freeze();
      fleet.lines.workerRedis.heal();
      const lateFrom0 = readCaptured(await subscription(second.url, id, { from: 0 }));
      const lateFrom40 = readCaptured(await subscription(second.url, id, { from: 40 }));
      await holder.kill();
      await first.member.kill();
      await Promise.all([holder.start(), first.member.start()]);

      expect((await bySse.ended).end).toEqual({ kind: "ended" });
      const { log, takenAt } = await readStored(redis, id);
      expect(log).toEqual(lab.referenceOf(ask));
      expect(takenAt).toBeGreaterThan(0);
      expect((await bySse.ended).records).toEqual(log);
      expect((await byWebSocket).records).toEqual(log);
      expect((await polling).records).toEqual(parse(log));
      expect((await listening).records).toEqual(parse(log));
      const [byNats, byNatsSocket] = await live;
      expect(byNats.texts).toEqual(log);
      expect(byNatsSocket.texts).toEqual(log);
      expect((await lateFrom0).texts).toEqual(log);
      expect((await lateFrom40).texts).toEqual(log.slice(40));
      for (const live of ["long-poll", "sse"] as const) {
        const late = await readDurably({ url: () => second.url + path, live, format: "json" });
        expect(late.records).toEqual(parse(log));
      }
      for (const { url } of fleet.gateways) {
        for (const from of [0, 555, log.length - 1]) {
          const late = await subscription(url, id, { from });
          expect(late.jetstream?.from).toBe(from);
          expect((await readCaptured(late)).texts).toEqual(log.slice(from));
        }
      }
      console.log(
        `${log.length} records, taken over at ${takenAt}; doubled: ${byNats.doubled}, ${byNatsSocket.doubled}`,
      );
    },
    timeoutMs,
  );

  it(
    "is the same for those who read by a label of its job, live and late, and each has its own jobs",
    async () => {
      const { fleet, redis } = lab;
      const [first, second] = [nth(fleet.gateways, 0), nth(fleet.gateways, 1)];
      const ask = { name: "labelled", model: "gen-mha", prompt: "the label", parameters };
      await lab.learn([ask]);
      const toLabel = (label: string) => subscribe(first.url, "/v2/subscriptions", { label });
      const [toBlue, toTale, toRed] = [
        await toLabel("team:blue"),
        await toLabel("kind:tale"),
        await toLabel("team:red"),
      ];
      const live = await Promise.all([toBlue, toTale].map((told) => listen(told)));
      const submit = async (labels: Readonly<Record<string, string>>, tokens = parameters.max_tokens) => {
        const generate = { text_input: ask.prompt, parameters: { ...parameters, max_tokens: tokens } };
        return (await submitLabelled(first.url, ask.model, generate, { labels })).request;
      };
      slowDown(fleet);
      const id = await submit({ team: "blue", kind: "tale" });
      const subjects = ["team:blue", "kind:tale"].map((label) =>
        subjectOfLabel("default", label, ask.model, tokenOf(id)),
      );
      const read = Promise.all(live.map((reader, i) => reader.of(subjects[i] ?? "")));
      const bySse = new Reader(second.url, id);
      await bySse.reach(50);
      const holder = await holderOf(redis, fleet.workers, id);
      holder.freeze();
      fleet.lines.workerRedis.heal();
      const other = await submit({ team: "red" }, 20);
      await holder.kill();
      await first.member.kill();
      await Promise.all([holder.start(), first.member.start()]);

      const { log, takenAt } = await bySse.ended.then(() => readStored(redis, id));
      expect(log).toEqual(lab.referenceOf(ask));
      expect(takenAt).toBeGreaterThan(0);
      for (const { texts } of await read) expect(texts).toEqual(log);
      for (const [i, told] of [toBlue, toTale].entries()) {
        expect([...(await readCapturedOfMany(told, 1))].map(([subject, { texts }]) => [subject, texts])).toEqual([
          [subjects[i], log],
        ]);
      }
      const red = [...(await readCapturedOfMany(toRed, 1))];
      expect(red.map(([subject]) => subject)).toEqual([
        subjectOfLabel("default", "team:red", ask.model, tokenOf(other)),
      ]);
    },
    timeoutMs,
  );

  it(
    "is captured whole although NATS was killed meanwhile",
    async () => {
      const { fleet, redis } = lab;
      const second = nth(fleet.gateways, 1);
      const ask = { name: "without NATS", model: "gen-mha", prompt: "the runner", parameters };
      const generate = { text_input: ask.prompt, parameters };
      const labels = { without: "NATS" };
      const { request: id } = await submitLabelled(second.url, ask.model, generate, { labels });
      const bySse = new Reader(second.url, id);
      await bySse.reach(50);
      await fleet.nats.kill();
      await bySse.reach(150);
      await fleet.nats.restart();
      expect((await bySse.ended).end).toEqual({ kind: "ended" });
      const { log } = await readStored(redis, id);
      const late = await subscription(second.url, id, { from: 0, ttl: 60_000 });
      expect((await readCaptured(late)).texts).toEqual(log);
      const toLabel = await subscribe(second.url, "/v2/subscriptions", { label: "without:NATS" });
      expect([...(await readCapturedOfMany(toLabel, 1)).values()].map(({ texts }) => texts)).toEqual([log]);
    },
    timeoutMs,
  );
});
