import { describe, expect, it } from "vitest";
import { outcomeKey } from "#shared/queue/keys.js";
import { attend, detach } from "#shared/queue/admission/attend.js";
import { useLab, type Lab } from "../support/queue/lab.js";

const address = (lab: Lab) => lab.addressOf("r1");

describe("a request's times", () => {
  const lab = useLab();

  it("are those of its admission, on Redis's clock", async () => {
    const [seconds] = await lab.redis.time();
    await lab.admitStream("r1", 5_000);
    const { at, wanted } = await lab.outcomeFields("r1");
    expect(Number(at)).toBeGreaterThanOrEqual(Number(seconds) * 1_000);
    expect(Number(wanted)).toBe(Number(at) + 5_000);
  });

  it("say the same of a turn of a conversation", async () => {
    await lab.admitStep({ request: "r1", start: true, attendedMs: 5_000 });
    const { at, wanted } = await lab.outcomeFields("r1");
    expect(Number(wanted)).toBe(Number(at) + 5_000);
  });

  it("set no end to a request that runs without readers", async () => {
    await lab.admitStream("r1");
    expect(Object.keys(await lab.outcomeFields("r1")).sort()).toEqual(["at", "by", "digest", "entry", "pin", "ttl"]);
  });
});

describe("attend", () => {
  const lab = useLab();

  it("moves the time until which somebody wants the stream", async () => {
    await lab.admitStream("r1", 5_000);
    await lab.redis.hset(outcomeKey(lab.addressOf("r1")), "wanted", "1");
    const [seconds] = await lab.redis.time();
    for (let i = 0; i < 2; i++) expect(await attend(lab.redis, address(lab), 60_000)).toBe("attended");
    const { at, wanted } = await lab.outcomeFields("r1");
    expect(Number(wanted)).toBeGreaterThanOrEqual(Number(seconds) * 1_000 + 60_000);
    expect(Number(wanted)).toBeLessThan(Number(at) + 120_000);
  });

  it("is not needed any more once a retry under the request's key needs no reader", async () => {
    await lab.admitStream("r1", 5_000, "d");
    expect(await lab.admitStream("r1", 5_000, "d")).toMatchObject({ said: "known", outcome: undefined });
    expect(await lab.outcomeFields("r1")).toHaveProperty("wanted");
    expect(await lab.admitStream("r1", 0, "d")).toMatchObject({ said: "known", outcome: undefined });
    expect(await attend(lab.redis, address(lab), 60_000)).toBe("background");
    expect(await lab.admitStream("r1", 5_000, "d")).toMatchObject({ said: "known", outcome: undefined });
    expect(await lab.outcomeFields("r1")).not.toHaveProperty("wanted");
  });

  it("leaves a request alone that runs without readers", async () => {
    await lab.admitStream("r1");
    expect(await attend(lab.redis, address(lab), 60_000)).toBe("background");
    expect(await lab.outcomeFields("r1")).not.toHaveProperty("wanted");
  });

  it("makes a request run without readers, once and for all", async () => {
    await lab.admitStream("r1", 5_000);
    for (let i = 0; i < 2; i++) expect(await detach(lab.redis, address(lab))).toBe("background");
    expect(await lab.outcomeFields("r1")).not.toHaveProperty("wanted");
    expect(await attend(lab.redis, address(lab), 60_000)).toBe("background");
  });

  it("says that a request has ended, and changes nothing", async () => {
    await lab.admitStream("r1", 5_000);
    await lab.giveError("r1", "{}");
    const before = await lab.outcomeFields("r1");
    expect(await attend(lab.redis, address(lab), 60_000)).toBe("ended");
    expect(await detach(lab.redis, address(lab))).toBe("ended");
    expect(await lab.outcomeFields("r1")).toEqual(before);
  });

  it("says when there is no such request, and makes none", async () => {
    expect(await attend(lab.redis, address(lab), 60_000)).toBe("unknown");
    expect(await detach(lab.redis, address(lab))).toBe("unknown");
    expect(await lab.redis.exists(outcomeKey(lab.addressOf("r1")))).toBe(0);
  });
});
