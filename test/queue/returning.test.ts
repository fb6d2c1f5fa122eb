import { pino } from "pino";
import { describe, expect, it } from "vitest";
import type { Delivery } from "#shared/contract/entry.js";
import { outcomeKey } from "#shared/keys.js";
import { giveOutcome } from "#shared/queue/give-outcome.js";
import { Returning, type Returned } from "../../worker/generator/returning.js";
import { reclaim } from "../../worker/queue/reclaim.js";
import type { Takeover } from "../../worker/queue/take-over.js";
import { admitStream, streaming, take, useLab, type Lab } from "./lab.js";

const AT_ONCE = 48;
const log = pino({ level: "silent" });

/** Streams that worker a has begun, in the hands of worker b. */
async function returned(lab: Lab, count: number) {
  for (let i = 0; i < count; i++) await admitStream(lab, `r${i}`);
  await take(lab.queue);
  const { deliveries } = await reclaim(lab.other, 0, count, "0-0");
  return deliveries.map((delivery) => {
    const active = { held: { delivery }, closed: false } as unknown as Returned["active"];
    return { active, generation: { key: delivery.entry, next: 1 } as Returned["generation"], standsSince: 1_000 };
  });
}

describe("streams that were another worker's", () => {
  const lab = useLab();
  const waitingRoom = () => {
    const turns = new Map<string, Takeover>();
    const turn = ({ active }: Returned, verdict: Takeover) => turns.set(active.held.delivery.entry, verdict);
    return { turns, returning: new Returning({ queue: streaming(lab.other), log, turn }) };
  };
  const taken = ({ request }: Delivery) => lab.redis.hget(outcomeKey(lab.lane, request), "taken");

  it("begin a few at a time: the others have nothing against them yet", async () => {
    const all = await returned(lab, AT_ONCE + 20);
    const { turns, returning } = waitingRoom();
    for (const one of all) returning.add(one);
    await expect.poll(() => turns.size).toBe(AT_ONCE);
    const counted = await Promise.all(all.map(({ active }) => taken(active.held.delivery)));
    expect(counted.filter((fact) => fact !== null)).toHaveLength(AT_ONCE);
    for (const entry of turns.keys()) returning.end(entry);
    await expect.poll(() => turns.size).toBe(all.length);
    expect(new Set(turns.values())).toEqual(new Set(["together"]));
  });

  it("begin as long as they have stood", async () => {
    const all = await returned(lab, AT_ONCE + 20);
    const { turns, returning } = waitingRoom();
    for (const [i, one] of all.entries()) returning.add({ ...one, standsSince: 1_000 - i });
    await expect.poll(() => turns.size).toBe(AT_ONCE);
    const longest = all.slice(-AT_ONCE).map(({ generation }) => generation.key);
    expect(new Set(turns.keys())).toEqual(new Set(longest));
  });

  it("begin with those whose readers have had tokens", async () => {
    const all = await returned(lab, 6);
    const { turns, returning } = waitingRoom();
    const [middle, fresh] = [all.slice(0, 3), all.slice(3)];
    for (const one of middle) returning.add(one);
    for (const { active, generation, standsSince } of fresh) {
      returning.add({ active, generation: { ...generation, next: 0 }, standsSince: standsSince - 500 });
    }
    await expect.poll(() => turns.size).toBe(middle.length);
    for (const { generation } of middle.slice(1)) returning.end(generation.key);
    // Whatever it asks for now, Redis answers before this.
    await new Promise(setImmediate);
    await lab.other.redis.ping();
    await new Promise(setImmediate);
    expect(turns.size).toBe(middle.length);
    for (const { generation } of middle) returning.end(generation.key);
    await expect.poll(() => turns.size).toBe(all.length);
    expect([...turns.keys()].slice(0, 3).sort()).toEqual(middle.map(({ generation }) => generation.key).sort());
  });

  it("make room for the next when theirs is not to run here", async () => {
    const all = await returned(lab, AT_ONCE + 1);
    for (const { active } of all.slice(0, AT_ONCE)) {
      await giveOutcome(lab.redis, [outcomeKey(lab.lane, active.held.delivery.request)], ["result", "", 60_000, 0]);
    }
    const { turns, returning } = waitingRoom();
    for (const one of all) returning.add(one);
    await expect.poll(() => turns.size).toBe(all.length);
    expect([...turns.values()].filter((verdict) => verdict === "ended")).toHaveLength(AT_ONCE);
  });

  it("have no turn when they ended while they waited", async () => {
    const [first, ...rest] = await returned(lab, 3);
    const { turns, returning } = waitingRoom();
    for (const one of rest) one.active.closed = true;
    for (const one of [first, ...rest]) if (one !== undefined) returning.add(one);
    await expect.poll(() => turns.size).toBe(1);
    expect(turns.get(first?.generation.key ?? "")).toBe("together");
  });
});
