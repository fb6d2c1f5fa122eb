/** A lane that no worker serves any more: its queued requests end in words, and leave nothing. */
import { beforeEach, describe, expect, it } from "vitest";
import { feedsOf } from "#shared/capture/captured.js";
import { readOutcome } from "#shared/contract/outcome.js";
import { connectBus, type Bus } from "#shared/nats/connect.js";
import type { Applicant } from "#shared/queue/admission/admit.js";
import { pinOf, type Lane } from "#shared/queue/address.js";
import { labelToken, laneKeys, registryKeys, unpublishedKey } from "#shared/queue/keys.js";
import { announce } from "#shared/queue/work/liveness/announce.js";
import { appendTokens } from "#shared/queue/work/streams/append-tokens.js";
import { bury } from "#shared/queue/work/liveness/bury.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { createGroup } from "#shared/queue/work/read/create-group.js";
import { notePins } from "#shared/queue/work/upkeep/note-pins.js";
import { readPins } from "#shared/queue/pins.js";
import { removeLane } from "#shared/queue/work/upkeep/remove-lane.js";
import { RedisClocks } from "#shared/redis/clock.js";
import { delay } from "#shared/retry.js";
import { clearLane } from "../../../worker/upkeep/clear-lane.js";
import { noteOtherLanes } from "../../../worker/lane/reconciler.js";
import { lookAfterPins } from "../../../worker/upkeep/upkeep.js";
import { announcementOf, servedModel } from "../../fixtures/served-models.js";
import {
  admit,
  finalRecord,
  IDLE_MS,
  LIMITS,
  oneLane,
  put,
  record,
  result,
  SEQUENCE,
  steady,
  streaming,
  takeOne,
  useLab,
  type Lab,
  applicant,
} from "../../support/queue/lab.js";
import { silentBus, silentLog } from "../../support/silent.js";
import { startNats } from "../../support/brokers/nats.js";
import { until } from "../../support/until.js";

const never = new AbortController().signal;

async function outcomeOfRequest(lab: Lab, request: string) {
  const { kind = "", body = "" } = await lab.outcomeFields(request);
  const outcome = readOutcome(kind, Buffer.from(body));
  return outcome.kind === "error" ? outcome.code : outcome.kind;
}

/** Clears the lab's lane by a worker that serves another lane. */
function clear(lab: Lab, more: { readonly streams?: boolean; readonly hasHeir?: boolean; readonly bus?: Bus } = {}) {
  const queue = { redis: lab.redis, consumer: "other.1", lane: lab.lane, streams: more.streams ?? false };
  return clearLane({ queue, bus: more.bus ?? silentBus, maxIdleMs: IDLE_MS, hasHeir: more.hasHeir ?? false }, never);
}

describe("clearing a lane", () => {
  const lab = useLab();
  const left = async () => ({
    entries: await lab.redis.xlen(laneKeys(lab.lane).ready),
    pending: (await lab.redis.xpending(laneKeys(lab.lane).ready, "workers"))[0],
  });

  it("tells who sent a request that the present version can take it", async () => {
    await lab.admitRequest("r");
    await lab.admitStep({ request: "s", start: true });
    expect(await clear(lab)).toBe(2);
    expect([await outcomeOfRequest(lab, "r"), await outcomeOfRequest(lab, "s")]).toEqual([
      "unavailable",
      "unavailable",
    ]);
    expect(await left()).toEqual({ entries: 0, pending: 0 });
    expect(await lab.redis.lrange(unpublishedKey("gw"), 0, -1)).toEqual(["default:r", "default:s"]);
    expect(await clear(lab)).toBe(0);
  });

  it.each([
    [false, "version_retired"],
    [true, "unavailable"],
  ])("ends all steps of a sequence, which keeps its state; with an heir: %s", async (hasHeir, code) => {
    await lab.admitStep({ request: "s1", start: true });
    const first = await lab.takeOne();
    await commit(lab.queue, [result(first, put("state"))], IDLE_MS);
    const at = await lab.currentVersion();
    for (const request of ["s2", "s3", "s4"]) await lab.admitStep({ request });
    expect(await clear(lab, { hasHeir })).toBe(3);
    for (const request of ["s2", "s3", "s4"]) expect(await outcomeOfRequest(lab, request)).toBe(code);
    expect([at, await lab.currentVersion()]).toEqual([at, at]);
    expect(await left()).toEqual({ entries: 0, pending: 0 });
  });

  it("ends streams for their readers, too, and a sealed one as its log says", async () => {
    await lab.admitStream("sealed");
    const { entry, request } = await lab.takeOne();
    const part = { lane: lab.lane, entry, tenant: "default", request, first: 0, final: true };
    await appendTokens(streaming(lab.queue), [{ ...part, records: [record(0), finalRecord(1)] }]);
    await lab.admitStream("waiting");
    expect(await clear(lab, { streams: true })).toBe(2);
    expect((await lab.outcomeFields("sealed"))["kind"]).toBe("result");
    expect(await outcomeOfRequest(lab, "waiting")).toBe("unavailable");
    expect(JSON.parse((await lab.logOf("waiting")).at(-1) ?? "")).toMatchObject({ final: true, reason: "error" });
    expect(await left()).toEqual({ entries: 0, pending: 0 });
  });

  it("tells of such an end on NATS, under the labels of its job, too", async () => {
    const nats = await startNats();
    const bus = connectBus({ url: nats.url, name: "lab", log: silentLog });
    try {
      await until(() => bus.isUp());
      const labels = [labelToken("team", "blue"), labelToken("kind", "tale")];
      const record = { type: "generate", options: "{}", shown: "{}", body: Buffer.alloc(0), labels: labels.join(" ") };
      await admit(lab.redis, { gateway: "gw", limits: LIMITS }, [
        { ...applicant(lab.lane, "labelled", "labelled"), job: { keptMs: 5_000, record } },
      ]);
      const heard: string[][] = [];
      const subjects = feedsOf(lab.addressOf("labelled"), labels).map(({ subject }) => subject);
      for (const one of subjects) await bus.subscribe(one, (message) => void heard.push([one, message.toString()]));
      expect(await clear(lab, { streams: true, bus })).toBe(1);
      const [last = ""] = await lab.logOf("labelled");
      await until(() => heard.length === subjects.length);
      expect(heard).toEqual(subjects.map((one) => [one, last]));
    } finally {
      await bus.close();
      await nats.dispose();
    }
  });

  it("takes what gone workers have left, and leaves what a living one still finishes", async () => {
    await lab.admitRequest("finishing");
    await lab.take(lab.other);
    await announce(lab.redis, {
      announcement: { ...announcementOf([]), worker: lab.other.consumer },
      lanes: [lab.lane],
      leaseMs: 60_000,
      connection: undefined,
    });
    await lab.admitRequest("left");
    await lab.take();
    await bury(lab.redis, lab.queue.consumer, { why: "ended" }, [lab.lane]);
    expect(await clear(lab)).toBe(1);
    expect(await outcomeOfRequest(lab, "left")).toBe("unavailable");
    expect((await lab.outcomeFields("finishing"))["kind"]).toBeUndefined();
    expect(await left()).toEqual({ entries: 1, pending: 1 });
    expect(await lab.redis.zcard(registryKeys.graves)).toBe(0);
    await bury(lab.redis, lab.other.consumer, { why: "ended" }, []);
  });

  it("also ends what is parked", async () => {
    const names = Array.from({ length: 250 }, (_, i) => `r${i}`);
    const applicants = names.map((name) => ({ ...applicant(lab.lane, name, name), window: 2 }));
    await admit(lab.redis, { gateway: "gw", limits: { ...LIMITS, queue: 1_000 } }, applicants);
    expect(await lab.redis.xlen(laneKeys(lab.lane).ready)).toBe(2);
    // If a user deletes the ready entries, no entry is left whose end would make room for the
    // parked requests.
    await lab.redis.xtrim(laneKeys(lab.lane).ready, "MAXLEN", 0);
    expect(await clear(lab)).toBe(248);
    for (const name of names.slice(2)) expect(await outcomeOfRequest(lab, name)).toBe("unavailable");
    expect(await lab.redis.exists(laneKeys(lab.lane).queue, laneKeys(lab.lane).parked)).toBe(0);
  });

  it("makes the group of a lane that has none, and sets aside what it cannot read", async () => {
    const { ready, dead } = laneKeys(lab.lane);
    await lab.redis.xgroup("DESTROY", ready, "workers");
    await lab.redis.xadd(ready, "*", "nonsense", "1");
    await lab.admitRequest("r");
    expect(await clear(lab)).toBe(1);
    expect(await lab.redis.xlen(dead)).toBe(1);
    expect(await left()).toEqual({ entries: 0, pending: 0 });
  });
});

describe("looking after pins", () => {
  const lab = useLab();
  const digest = "0123456789abcdef".repeat(4);
  beforeEach(async () => {
    lab.lane = { ...lab.lane, ...pinOf({ version: lab.lane.version, digest }) };
    await createGroup(lab.redis, lab.lane);
  });
  const served = (worker: string, version: string) => ({
    announcement: { ...announcementOf([servedModel(lab.lane.model, { version, digest })]), worker },
    lanes: [],
    leaseMs: 60_000,
    connection: undefined,
  });
  const pinned = (version: string) => {
    const { model } = lab.lane;
    return { model, ...pinOf({ version, digest }), streams: false, maxIdleMs: IDLE_MS };
  };
  const versions = async () => (await readPins(lab.redis)).map(({ version }) => version).sort();
  const DAY_MS = 86_400_000;
  /** The terms under which the worker `new.1` looks after the lanes. */
  const upkeepTerms = async () => {
    const clocks = new RedisClocks(lab.redis);
    await clocks.read();
    const { redis } = lab;
    return { redis, bus: silentBus, worker: "new.1", buckets: 1, clocks, outageGuard: steady(), log: silentLog };
  };

  it(
    "clears the lanes of what has left, and forgets it when no gateway knows it any more",
    { timeout: 90_000 },
    async () => {
      const over = new AbortController();
      const terms = await upkeepTerms();
      await announce(lab.redis, served("old.1", lab.lane.version));
      await announce(lab.redis, served("new.1", "9"));
      await notePins(lab.redis, [pinned(lab.lane.version), pinned("9")]);
      await lab.admitRequest("early");
      const looking = [1, 2].map(() => lookAfterPins(terms, over.signal));
      try {
        await expect.poll(() => lab.redis.get(registryKeys.settled)).not.toBeNull();
        expect((await lab.outcomeFields("early"))["kind"]).toBeUndefined();

        await bury(lab.redis, "old.1", { why: "leaving" }, []);
        await expect.poll(() => lab.outcomeFields("early")).toHaveProperty("kind", "error");
        // A gateway that has not heard of the retirement yet still admits for the lane.
        await lab.admitRequest("late");
        await expect.poll(() => lab.outcomeFields("late")).toHaveProperty("kind", "error");
        expect(await versions()).toEqual([lab.lane.version, "9"].sort());

        await bury(lab.redis, "old.1", { why: "ended" }, []);
        await lab.redis.zincrby(registryKeys.gone, -DAY_MS, "old.1");
        await expect.poll(versions, { timeout: 60_000 }).toEqual(["9"]);
        expect(await lab.redis.exists(laneKeys(lab.lane).ready)).toBe(0);
        await expect
          .poll(async () => (await lab.redis.get(registryKeys.settled)) === (await lab.redis.get(registryKeys.version)))
          .toBe(true);
      } finally {
        over.abort();
        await Promise.all(looking);
      }
    },
  );

  it(
    "clears a lane that was forgotten while a step for it waited behind another version's",
    { timeout: 90_000 },
    async () => {
      const over = new AbortController();
      const terms = await upkeepTerms();
      const newer = { ...lab.lane, ...pinOf({ version: "9", digest }) };
      await createGroup(lab.redis, newer);
      await announce(lab.redis, served("new.1", "9"));
      await notePins(lab.redis, [pinned("9")]);
      const begin = (lane: Lane, request: string): Applicant => ({
        ...applicant(lane, request, request),
        sequence: { name: SEQUENCE, start: true, end: false },
      });
      await admit(lab.redis, { gateway: "gw", limits: LIMITS }, [begin(newer, "first"), begin(lab.lane, "second")]);
      const queue = oneLane(lab.redis, newer, "new.1");
      const first = await takeOne(queue);
      expect(await removeLane(lab.redis, lab.lane)).toBe("removed");
      const looking = lookAfterPins(terms, over.signal);
      try {
        await expect.poll(() => lab.redis.get(registryKeys.settled)).not.toBeNull();
        expect(await commit(queue, [result(first, put("s"))], IDLE_MS)).toEqual(["committed"]);
        await noteOtherLanes(queue, [SEQUENCE], { maxIdleMs: IDLE_MS, log: silentLog });
        await expect.poll(() => lab.outcomeFields("second"), { timeout: 60_000 }).toHaveProperty("kind", "error");
        await expect.poll(versions, { timeout: 60_000 }).toEqual(["9"]);
      } finally {
        over.abort();
        await looking;
      }
    },
  );

  it("leaves alone what only looks retired, and is announced again at once", async () => {
    const over = new AbortController();
    const terms = await upkeepTerms();
    await notePins(lab.redis, [pinned(lab.lane.version)]);
    await lab.redis.set(registryKeys.version, "wiped");
    await lab.admitRequest("r");
    const looking = lookAfterPins(terms, over.signal);
    try {
      await expect.poll(() => lab.redis.exists(registryKeys.upkeep)).toBe(1);
      await announce(lab.redis, served("old.1", lab.lane.version));
      await delay(10_000);
      expect((await lab.outcomeFields("r"))["kind"]).toBeUndefined();
      expect(await versions()).toContain(lab.lane.version);
    } finally {
      over.abort();
      await looking;
    }
  });
});
