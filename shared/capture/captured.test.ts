import { describe, expect, it } from "vitest";
import { firstFrom, type Captured } from "./captured.js";

/** A request's messages in JetStream, in order of `seq`. */
function among(captured: readonly Captured[]) {
  const [first, last] = [captured[0], captured.at(-1)];
  if (first === undefined || last === undefined) throw new Error("nothing is captured");
  let looks = 0;
  const next = (seq: number) => {
    looks++;
    return Promise.resolve(captured.find((one) => one.seq >= seq));
  };
  return {
    find: (from: number) => firstFrom(first, last, from, next),
    looks: () => looks,
  };
}

/** Leaves room between the request's messages for messages of other requests. */
const spread = (indexes: readonly number[]) => indexes.map((index, i) => ({ seq: 5 + i * 37, index }));
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

describe("the place of an index", () => {
  it("is found for each index, in few looks where the log is long", async () => {
    const all = spread(upTo(200));
    for (const { seq, index } of all) expect(await among(all).find(index)).toEqual({ seq, index });
    const long = among(spread(upTo(20_000)));
    expect((await long.find(13_337))?.index).toBe(13_337);
    expect(long.looks()).toBeLessThan(30);
  });

  it("is that of the first one kept where the index is gone, and none where it has not come", async () => {
    const kept = among(spread(upTo(100).slice(40)));
    expect((await kept.find(7))?.index).toBe(40);
    expect(await kept.find(100)).toBeUndefined();
  });

  it.each([
    ["one that came again late", [...upTo(60), 12, ...upTo(100).slice(60)]],
    ["several that came again late", [...upTo(50), 3, 4, ...upTo(80).slice(50), 49, ...upTo(100).slice(80)]],
    ["a run that was published again", [...upTo(60), ...upTo(100).slice(44)]],
    ["what no process of ours has published", [...upTo(60), -1, -1, ...upTo(100).slice(60)]],
  ])("is one after which nothing is missing, beside %s", async (_, indexes) => {
    const all = spread(indexes);
    for (const from of upTo(100)) {
      const found = await among(all).find(from);
      expect(found?.index).toBe(from);
      let next = from;
      for (const { index } of all.filter(({ seq }) => seq >= (found?.seq ?? 0))) {
        expect(index).toBeLessThanOrEqual(next);
        if (index === next) next++;
      }
      expect(next).toBe(100);
    }
  });
});
