/** States of idle sequences that go to disk, and those that cannot. */
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { encodeCheckpoint, nameRun } from "#shared/contract/checkpoint.js";
import { encodeFrame } from "#shared/frame.js";
import { laneKeys, versionKey } from "#shared/queue/keys.js";
import { commit } from "#shared/queue/work/commit/commit.js";
import { timeAt } from "#shared/redis/clock.js";
import { isPointer, SleepingStates } from "#shared/sleeping-states.js";
import { bringToDisk } from "../../worker/upkeep/hibernate.js";
import { removeUnused } from "../../worker/upkeep/unused-files.js";
import { changeFacts } from "../support/queue/facts.js";
import { IDLE_MS, result, useLab } from "../support/queue/lab.js";
import { silentLog } from "../support/silent.js";

const COUNT = 12;

describe("states of idle sequences", () => {
  const lab = useLab();
  let folder: string;
  let states: SleepingStates;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "baton-asleep-"));
    states = new SleepingStates(folder, Buffer.alloc(32, 1), silentLog);
    await states.prepare();
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const name = (i: number) => `default:u${i}`;
  const keyAt = async (i: number) => versionKey(lab.lane, name(i), await lab.currentVersion(name(i)));
  const settings = () => ({ redis: lab.redis, afterMs: 1, states, log: silentLog });
  const round = () => bringToDisk(settings(), lab.lane, IDLE_MS);
  const written = async () =>
    (await readdir(folder, { recursive: true })).filter((path) => /[0-9a-f]{32}\./.test(path));

  /** Makes idle sequences, and waits until the clock of Redis counts them as idle. */
  async function makeIdle(): Promise<void> {
    for (let i = 0; i < COUNT; i++) {
      await lab.admitStep({ request: `r${i}`, start: true, sequence: name(i) });
      const version = nameRun("run");
      const { frame } = encodeCheckpoint(version, []);
      await commit(lab.queue, [result(await lab.takeOne(), { action: "put", version, checkpoint: frame })], IDLE_MS);
    }
    const made = await timeAt(lab.redis, lab.lane.model);
    await expect.poll(() => timeAt(lab.redis, lab.lane.model), { interval: 5 }).toBeGreaterThan(made + 5);
  }

  it.each([
    ["one byte", Buffer.from("x")],
    ["no frame", Buffer.from("what nobody has written")],
  ])("go to disk beside one that cannot be read (%s)", async (_, unreadable) => {
    await makeIdle();
    await lab.redis.set(await keyAt(3), unreadable);
    await round();
    const asleep = await Promise.all(
      Array.from({ length: COUNT }, async (_, i) => isPointer(await lab.redis.getBuffer(await keyAt(i)))),
    );
    expect(asleep).toEqual(Array.from({ length: COUNT }, (_, i) => i !== 3));
    await round();
    expect(await written()).toHaveLength(COUNT - 1);
  });

  it("stay in Redis while their sequence is busy or has lived on, and it is filed again", async () => {
    await makeIdle();
    const { live } = laneKeys(lab.lane);
    const laterOn = Math.ceil(await timeAt(lab.redis, live)) + 2 * IDLE_MS;
    await changeFacts(lab.redis, lab.lane, name(3), { lapses: laterOn });
    await lab.admitStep({ request: "next", sequence: name(4) });
    await round();
    const awake = Array.from({ length: COUNT }, async (_, i) => !isPointer(await lab.redis.getBuffer(await keyAt(i))));
    expect(await Promise.all(awake)).toEqual(Array.from({ length: COUNT }, (_, i) => i === 3 || i === 4));
    expect(await lab.redis.zmscore(live, name(3), name(4))).toEqual([String(laterOn), "inf"]);
  });

  it("go to disk although the index names a time that has passed, unless their sequence has expired", async () => {
    await makeIdle();
    const { live } = laneKeys(lab.lane);
    await lab.redis.zadd(live, 1, name(3), 2, name(4));
    await changeFacts(lab.redis, lab.lane, name(4), { lapses: 2 });
    await round();
    const awake = Array.from({ length: COUNT }, async (_, i) => !isPointer(await lab.redis.getBuffer(await keyAt(i))));
    expect(await Promise.all(awake)).toEqual(Array.from({ length: COUNT }, (_, i) => i === 4));
  });

  it("leave no file behind that was not written to its end", async () => {
    // The key can be written, but not the frame, because it is no buffer.
    const frame = { length: 8, readUInt32LE: () => 4 } as unknown as Buffer;
    await expect(states.write("key", frame)).rejects.toThrow();
    expect(await written()).toEqual([]);
  });

  it("lose the drafts of workers that died, after an hour", async () => {
    const deployment = join(folder, (await readdir(folder))[0] ?? "");
    await states.write("key", encodeFrame({}, []));
    const part = join(deployment, (await readdir(deployment)).find((one) => one.length === 2) ?? "");
    const [old, young] = [join(part, `${"a".repeat(32)}.old.new`), join(part, `${"a".repeat(32)}.young.new`)];
    for (const path of [old, young]) await writeFile(path, "half");
    const then = Date.now() / 1_000 - 3_700;
    await utimes(old, then, then);
    await removeUnused({ ...settings(), unused: new Map() }, new AbortController().signal);
    const left = (await written()).filter((path) => path.endsWith(".new"));
    expect(left).toEqual([expect.stringContaining("young")]);
  });
});
