/** Scripts note the events of jobs only if a webhook wants these events. */
import { describe, expect, it } from "vitest";
import { storeOutcome } from "#shared/contract/outcome.js";
import { repeatsText } from "#shared/queue/pieces/job.js";
import { eventsKey, outcomeKey, wantedKey } from "#shared/queue/keys.js";
import type { EventType } from "#shared/queue/pieces/events.js";
import { readJob } from "#shared/queue/jobs/read.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { noteBegun } from "#shared/queue/work/read/note-begun.js";
import { release } from "#shared/queue/work/read/release.js";
import { noteWanted } from "#shared/queue/webhooks/note-wanted.js";
import { admit, IDLE_MS, LIMITS, put, result, SEQUENCE, useLab, applicant } from "../support/queue/lab.js";

const lab = useLab();
let count = 0;
const outbox = eventsKey(0);

interface Facts {
  readonly job: string;
  readonly state: string;
  readonly made: string;
  readonly failure?: string;
  readonly began?: string;
  readonly own?: string;
}

/** The events since the last call, in order. */
async function noted(): Promise<[type: string, facts: Facts][]> {
  const entries = await lab.redis.xrange(outbox, "-", "+");
  await lab.redis.del(outbox, wantedKey(0));
  return entries.map(([, [, , , type, , facts]]) => [String(type), JSON.parse(String(facts)) as Facts]);
}
const want = (...events: EventType[]) => noteWanted(lab.redis, [0], { tenant: "default", revision: ++count, events });
const types = async () => (await noted()).map(([type]) => type);

async function admitJob(tell?: string, isStep = false, repeats?: string): Promise<string> {
  const request = `j${count++}`;
  const own = tell !== undefined && { tell, target: '{"id":"wh_1"}' };
  const more = repeats !== undefined && { repeats, wait: "60000" };
  const record = { type: "infer", options: "{}", shown: "{}", body: Buffer.from("{}"), ...own, ...more };
  const sequence = isStep ? { name: SEQUENCE, start: true, end: false } : undefined;
  const one = { ...applicant(lab.lane, request, request), sequence, job: { keptMs: 60_000, record } };
  expect(await admit(lab.redis, { gateway: "gw", limits: LIMITS }, [one])).toEqual([{ said: "admitted" }]);
  return request;
}
const finish = async () => commit(lab.queue, [result(await lab.takeOne(), { action: "drop" })], IDLE_MS);

describe("that a job has begun", () => {
  it("is said by its entry where somebody wants to know, and noted once, by who owns it", async () => {
    await want("job.started");
    await admitJob();
    const delivery = await lab.takeOne();
    expect(delivery).toMatchObject({ tellsBegin: true, number: 0 });
    await noteBegun(lab.other, [delivery]);
    expect(await lab.redis.xlen(outbox)).toBe(0);
    await noteBegun(lab.queue, [delivery]);
    await noteBegun(lab.queue, [delivery]);
    await release(lab.queue, [delivery]);
    const again = await lab.takeOne(lab.other);
    await noteBegun(lab.other, [again]);
    await commit(lab.other, [result(again, { action: "drop" })], IDLE_MS);
    expect((await noted()).map(([type, { state }]) => [type, state])).toEqual([["job.started", "running"]]);
  });

  it("is noted with its end where the worker could not, and not where none has run it", async () => {
    await want("job.started", "job.completed", "job.cancelled");
    await admitJob();
    await finish();
    expect(await types()).toEqual(["job.started", "job.completed"]);
    await want("job.started", "job.cancelled");
    await lab.giveError(await admitJob(), '{"code":"cancelled","message":"m"}');
    expect(await types()).toEqual(["job.cancelled"]);
  });

  it("is known of one that is cancelled then, as it was told, and not of one that was handed back", async () => {
    const request = await admitJob("job.started job.cancelled");
    const began = async () => (await readJob(lab.redis, lab.addressOf(request), 1))?.beganAt;
    const delivery = await lab.takeOne();
    await noteBegun(lab.queue, [delivery]);
    await release(lab.queue, [delivery]);
    expect(await began()).toBeUndefined();
    await lab.giveError(request, '{"code":"cancelled","message":"m"}');
    const [[, first] = [], [, last] = []] = await noted();
    expect([first?.began, last?.began]).toEqual(Array(2).fill(String(await began())));
  });

  it("is noted with its end where a worker has it that could not, and it is ended from elsewhere", async () => {
    const request = await admitJob("job.started job.cancelled");
    await lab.takeOne();
    await lab.giveError(request, '{"code":"cancelled","message":"m"}');
    const all = await noted();
    expect(all.map(([type, { state }]) => [type, state])).toEqual([
      ["job.started", "running"],
      ["job.cancelled", "cancelled"],
    ]);
    const view = await readJob(lab.redis, lab.addressOf(request), 1);
    // Redis counts an entry's idle time in whole ms, so the time before it may lie 1 ms before the
    // admission. A view puts its times in order.
    expect(view?.beganAt).toBe(Math.max(Number(all[1]?.[1].began), view?.queuedAt ?? NaN));
  });

  it("is noted where it has failed as well, although it is tried once more, and its end is not", async () => {
    const failure = storeOutcome({ kind: "error", code: "model_error", message: "no" });
    const repeats = { attempts: 2, delayMs: 1, factor: 1, mostMs: 1, mostBytes: -1, codes: ["model_error"] };
    await admitJob("job.started job.failed", false, repeatsText(repeats));
    await commit(lab.queue, [{ ...result(await lab.takeOne(), { action: "drop" }), outcome: failure }], IDLE_MS);
    const all = (await noted()).filter(([type]) => type !== "due");
    expect(all.map(([type, { state, made, own }]) => [type, state, made, own])).toEqual([
      ["job.started", "running", "1", '{"id":"wh_1"}'],
    ]);
  });

  it("costs a step nothing that nobody wants to hear of", async () => {
    await want("job.completed");
    await admitJob();
    expect((await lab.takeOne()).tellsBegin).toBe(false);
    await admitJob("job.started", true);
    const [step] = await lab.take();
    expect(step).toMatchObject({ tellsBegin: true, number: 1, start: true });
    if (step !== undefined) await commit(lab.queue, [result(step, put("s"))], IDLE_MS);
    await noted();
  });
});

describe("how a job has ended", () => {
  it.each([
    ["cancelled", "job.cancelled"],
    ["expired", "job.expired"],
    ["model_error", "job.failed"],
  ] as const)("with %s is %s", async (code, type) => {
    await want(type);
    const request = await admitJob();
    const failure = JSON.stringify({ code, message: "why" });
    await lab.giveError(request, failure);
    const [[told, facts] = []] = await noted();
    expect([told, facts]).toEqual([type, expect.objectContaining({ job: `default:${request}`, made: "1", failure })]);
  });

  it("is told to a webhook of its own as well, and only of the events that it names", async () => {
    await admitJob("job.completed job.failed");
    await finish();
    expect((await noted()).map(([type, { own }]) => [type, own])).toEqual([["job.completed", '{"id":"wh_1"}']]);
    await admitJob("job.failed");
    await finish();
    expect(await noted()).toEqual([]);
    await want("job.completed");
    await admitJob("job.failed");
    await finish();
    expect((await noted()).map(([type, { own }]) => [type, own])).toEqual([["job.completed", undefined]]);
  });

  it("is noted in the call that ends it, and not by a second one", async () => {
    await want("job.completed");
    const request = await admitJob();
    const delivery = await lab.takeOne();
    const settled = [result(delivery, { action: "drop" })];
    expect(await commit(lab.queue, settled, IDLE_MS)).toEqual(["committed"]);
    expect(await commit(lab.queue, settled, IDLE_MS)).toEqual(["already"]);
    expect(await lab.redis.hget(outcomeKey(lab.addressOf(request)), "kind")).toBe("result");
    expect(await types()).toEqual(["job.completed"]);
  });
});
