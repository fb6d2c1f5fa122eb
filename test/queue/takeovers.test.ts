import { describe, expect, it } from "vitest";
import type { Delivery } from "#shared/queue/entry.js";
import { outcomeKey } from "#shared/queue/keys.js";
import { giveOutcome } from "#shared/queue/ends/give-outcome.js";
import type { Held } from "../../worker/lane/holdings.js";
import { Stream, type StreamFacts } from "../../worker/streams/stream.js";
import { Takeovers, type Turn } from "../../worker/streams/takeover.js";
import { takeFrom } from "#shared/queue/work/liveness/take-from.js";
import type { Takeover } from "#shared/queue/work/streams/take-over.js";
import { streaming, useLab, type Lab } from "../support/queue/lab.js";
import { silentLog } from "../support/silent.js";

const AT_ONCE = 48;
/** Streams that worker a has begun and that worker b has taken over. */
async function returned(lab: Lab, count: number) {
  for (let i = 0; i < count; i++) await lab.admitStream(`r${i}`);
  await lab.take();
  const { deliveries } = await takeFrom(lab.other, lab.queue.consumer, count);
  return deliveries.map((delivery) => {
    const facts: Pick<StreamFacts, "takenOver"> = { takenOver: true };
    const stream = new Stream({ ...facts, held: { delivery } as Held } as StreamFacts);
    const generation = { key: delivery.key, next: 1 } as Turn["generation"];
    stream.waitForTurn(generation);
    return { stream, generation, standsSince: 1_000 };
  });
}

describe("streams that were another worker's", () => {
  const lab = useLab();
  const waitingRoom = () => {
    const turns = new Map<string, Takeover>();
    const begun = ({ stream }: Turn, verdict: Takeover) => turns.set(stream.key, verdict);
    return { turns, takeovers: new Takeovers({ queue: streaming(lab.other), log: silentLog, begun }) };
  };
  const taken = ({ request }: Delivery) => lab.redis.hget(outcomeKey(lab.addressOf(request)), "taken");

  it("begin a few at a time: the others do not count as begun yet", async () => {
    const all = await returned(lab, AT_ONCE + 20);
    const { turns, takeovers } = waitingRoom();
    for (const one of all) takeovers.add(one);
    await expect.poll(() => turns.size).toBe(AT_ONCE);
    const counted = await Promise.all(all.map(({ stream }) => taken(stream.held.delivery)));
    expect(counted.filter((fact) => fact !== null)).toHaveLength(AT_ONCE);
    for (const entry of turns.keys()) takeovers.end(entry, 0);
    await expect.poll(() => turns.size).toBe(all.length);
    expect(new Set(turns.values())).toEqual(new Set(["together"]));
  });

  it("begin in the order of how long they have stood still", async () => {
    const all = await returned(lab, AT_ONCE + 20);
    const { turns, takeovers } = waitingRoom();
    for (const [i, one] of all.entries()) takeovers.add({ ...one, standsSince: 1_000 - i });
    await expect.poll(() => turns.size).toBe(AT_ONCE);
    const longest = all.slice(-AT_ONCE).map(({ generation }) => generation.key);
    expect(new Set(turns.keys())).toEqual(new Set(longest));
  });

  it("begin with those whose readers have had tokens", async () => {
    const all = await returned(lab, 6);
    const { turns, takeovers } = waitingRoom();
    const [middle, fresh] = [all.slice(0, 3), all.slice(3)];
    for (const one of middle) takeovers.add(one);
    for (const { stream, generation, standsSince } of fresh) {
      takeovers.add({ stream, generation: { ...generation, next: 0 }, standsSince: standsSince - 500 });
    }
    await expect.poll(() => turns.size).toBe(middle.length);
    for (const { generation } of middle.slice(1)) takeovers.end(generation.key, 0);
    // Redis answers the worker's next command before this ping.
    await new Promise(setImmediate);
    await lab.other.redis.ping();
    await new Promise(setImmediate);
    expect(turns.size).toBe(middle.length);
    for (const { generation } of middle) takeovers.end(generation.key, 0);
    await expect.poll(() => turns.size).toBe(all.length);
    expect([...turns.keys()].slice(0, 3).sort()).toEqual(middle.map(({ generation }) => generation.key).sort());
  });

  it("make room for the next when theirs is not to run here", async () => {
    const all = await returned(lab, AT_ONCE + 1);
    for (const { stream } of all.slice(0, AT_ONCE)) {
      const address = lab.addressOf(stream.held.delivery.request);
      await giveOutcome(lab.redis, address, { kind: "result", body: Buffer.from("") }, 60_000);
    }
    const { turns, takeovers } = waitingRoom();
    for (const one of all) takeovers.add(one);
    await expect.poll(() => turns.size).toBe(all.length);
    expect([...turns.values()].filter((verdict) => verdict === "ended")).toHaveLength(AT_ONCE);
  });

  it("have no turn when they ended while they waited", async () => {
    const [first, ...rest] = await returned(lab, 3);
    const { turns, takeovers } = waitingRoom();
    for (const one of rest) one.stream.close();
    for (const one of [first, ...rest]) if (one !== undefined) takeovers.add(one);
    await expect.poll(() => turns.size).toBe(1);
    expect(turns.get(first?.generation.key ?? "")).toBe("together");
  });
});
