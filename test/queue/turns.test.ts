/** The turn of a model goes from worker to worker, and comes back after a holder that is gone. */
import { describe, expect, it } from "vitest";
import { GROUP, laneKeys } from "#shared/queue/keys.js";
import { createGroup } from "#shared/queue/work/read/create-group.js";
import { mendTurn } from "#shared/queue/work/read/mend-turn.js";
import { passTurn } from "#shared/queue/work/read/pass-turn.js";
import { lanesByKey, waitForNew } from "#shared/queue/work/stream.js";
import { useLab } from "../support/queue/lab.js";

describe("the turn of a model", () => {
  const lab = useLab();
  const key = () => laneKeys(lab.lane).turn;
  const mend = () => mendTurn(lab.redis, key(), lanesByKey([lab.lane]));
  /** Asks for the turn. @returns its entry; undefined if another worker has it */
  const ask = async (consumer: string) =>
    (await waitForNew(lab.redis, consumer, new Map(), 1, 1, [key()])).turned.get(key());
  const pass = async (consumer: string, entry: string | undefined, to: "next" | "caller") =>
    passTurn(lab.redis, key(), { consumer, entry: entry ?? expect.fail("there is no turn"), to });

  it("is there once, for the first that asks", async () => {
    expect([await mend(), await mend()]).toEqual(["new", "kept"]);
    expect(await ask("a")).toBeDefined();
    expect(await ask("b")).toBeUndefined();
    expect(await mend()).toBe("kept");
  });

  it("goes to the next when its holder passes it on, and to nobody if another has it", async () => {
    await mend();
    const first = await ask("a");
    const passed = await pass("a", first, "next");
    expect(passed).toBeDefined();
    expect(await pass("a", first, "next")).toBeUndefined();
    expect(await ask("b")).toBe(passed);
    expect(await pass("a", passed, "next")).toBeUndefined();
  });

  it("stays with a holder that renews it", async () => {
    await mend();
    const renewed = await pass("a", await ask("a"), "caller");
    expect(await ask("b")).toBeUndefined();
    expect(await pass("a", renewed, "next")).toBeDefined();
    expect(await ask("b")).toBeDefined();
  });

  it("is made anew if its holder has not renewed it for long", async () => {
    await mend();
    const [first, passed] = [await ask("a"), await ask("b")];
    expect(passed).toBeUndefined();
    // Stands for a holder that is long gone.
    await lab.redis.xdel(key(), first ?? "");
    await lab.redis.xadd(key(), "*", "at", "0");
    const lost = await ask("a");
    expect(await mend()).toBe("new");
    expect(await pass("a", lost, "caller")).toBeUndefined();
    expect(await ask("b")).toBeDefined();
  });

  it("is no reason to leave a request behind that nobody reads", async () => {
    await createGroup(lab.redis, lab.lane);
    await mend();
    const { ready } = laneKeys(lab.lane);
    // The id of an entry has the time at which it came.
    await lab.redis.xadd(ready, "1-1", "field", "of long ago");
    expect(await mend()).toBe("unread");
    await lab.redis.xreadgroup("GROUP", GROUP, "a", "STREAMS", ready, ">");
    expect(await mend()).toBe("kept");
    await lab.redis.xadd(ready, "*", "field", "of just now");
    expect(await mend()).toBe("kept");
  });
});
