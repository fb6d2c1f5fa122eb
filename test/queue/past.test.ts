/** For a while after a sequence is gone, a step learns the reason. */
import { describe, expect, it } from "vitest";
import { sequencesKey } from "#shared/queue/keys.js";
import { endSequence } from "#shared/queue/sequences/end.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { mendSequence } from "#shared/queue/work/commit/mend-sequence.js";
import { laneKeys } from "#shared/queue/keys.js";
import { reapIdle } from "#shared/queue/reap-idle.js";
import type { StateChange } from "#shared/queue/work/commit/settlement.js";
import { changeFacts } from "../support/queue/facts.js";
import { IDLE_MS, put, result, SEQUENCE, useLab } from "../support/queue/lab.js";

const MOST = 10_000;
const TWENTY_MINUTES = 1_200_000;

describe("a step that finds no sequence", () => {
  const lab = useLab();
  let count = 0;
  const why = async () => {
    const said = await lab.admitStep({ request: `why${count++}` });
    return said.said === "start-required" ? said.why : said.said;
  };
  async function step(state: StateChange, flags: { start?: boolean; end?: boolean } = {}): Promise<void> {
    await lab.admitStep({ request: `r${count++}`, ...flags });
    await commit(lab.queue, [result(await lab.takeOne(), state)], IDLE_MS);
  }
  const address = () => ({ bucket: lab.lane.bucket, model: lab.lane.model, name: SEQUENCE });
  const past = async () => (await lab.redis.keys(`past:*${lab.lane.model}:*`)).sort();

  it("is told that its last step had END", async () => {
    await step(put("s"), { start: true });
    await step(put("s"), { end: true });
    expect(await why()).toBe("ended");
  });

  it("is told that it has idled out, also when it was removed", async () => {
    await step(put("s"), { start: true });
    await changeFacts(lab.redis, lab.lane, SEQUENCE, { lapses: 1 });
    expect(await why()).toBe("expired");
    await lab.redis.zadd(laneKeys(lab.lane).live, 1, SEQUENCE);
    expect(await reapIdle(lab.queue, 10, IDLE_MS)).toBe(1);
    expect(await lab.redis.exists(sequencesKey(lab.lane))).toBe(0);
    expect(await why()).toBe("expired");
  });

  it("is told that it was deleted, idle or while its steps ran", async () => {
    await step(put("s"), { start: true });
    expect(await endSequence(lab.redis, address())).toMatchObject({ said: "ended", view: { step: 1 } });
    expect(await why()).toBe("deleted");
    await step(put("s"), { start: true });
    await lab.admitStep({ request: "runs" });
    await lab.admitStep({ request: "waits" });
    expect(await endSequence(lab.redis, address())).toMatchObject({ said: "ended" });
    expect(await endSequence(lab.redis, address())).toEqual({ said: "unknown" });
    expect(await why()).toBe("deleted");
    expect(await commit(lab.queue, [result(await lab.takeOne(), put("a"))], IDLE_MS)).toEqual(["committed"]);
    expect(await commit(lab.queue, [result(await lab.takeOne(), put("b"))], IDLE_MS)).toEqual(["committed"]);
    expect(await lab.redis.exists(sequencesKey(lab.lane))).toBe(0);
    expect(await lab.redis.zscore(laneKeys(lab.lane).live, SEQUENCE)).toBeNull();
    expect(await why()).toBe("deleted");
  });

  it("is told that its START was cancelled, or that it has failed", async () => {
    await lab.admitStep({ request: "start", start: true });
    const start = await lab.takeOne();
    await lab.giveError("start", "{}");
    expect(await commit(lab.queue, [result(start, put("s"))], IDLE_MS)).toEqual(["superseded"]);
    expect(await why()).toBe("cancelled");
    await step(put("s"), { start: true });
    await step({ action: "fail" });
    expect(await why()).toBe("cancelled");
    await lab.admitStep({ request: "again", start: true });
    await lab.redis.xdel(laneKeys(lab.lane).ready, (await lab.takeOne()).entry);
    expect(await mendSequence(lab.queue, SEQUENCE)).toBeDefined();
    expect(await why()).toBe("cancelled");
  });

  it("is told of the last sequence of its id", async () => {
    await step(put("s"), { start: true, end: true });
    await step(put("s"), { start: true });
    await endSequence(lab.redis, address());
    expect(await why()).toBe("deleted");
  });

  it("is told nothing for ever: what is noted has a TTL, and there is not too much of it", async () => {
    await step(put("s"), { start: true, end: true });
    const [key = ""] = await past();
    const ttl = await lab.redis.pttl(key);
    expect(ttl).toBeGreaterThan(0);
    expect(ttl).toBeLessThanOrEqual(TWENTY_MINUTES);
    const others = Array.from({ length: MOST }, (_, i) => [`default:x${i}`, "1"]).flat();
    await lab.redis.hset(key, ...others);
    await step(put("s"), { start: true });
    await endSequence(lab.redis, address());
    expect(await lab.redis.hlen(key)).toBe(1);
    expect(await past()).toHaveLength(2);
    expect(await why()).toBe("deleted");
    for (const one of await past()) await lab.redis.unlink(one);
    expect(await why()).toBe("never_started");
  });
});
