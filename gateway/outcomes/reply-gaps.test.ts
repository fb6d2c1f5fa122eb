import { describe, expect, it } from "vitest";
import type { Mark } from "#shared/contract/reply.js";
import { ReplyGaps } from "./reply-gaps.js";

function mark(number: number, kind: Mark["kind"] = "replies", channel = 1, sender = "w1"): Mark {
  return { sender, channel, number, kind };
}

/** Asks as often as a gateway does. */
function silencesUntil(gaps: ReplyGaps, from: number, until: number): number[] {
  const silences: number[] = [];
  for (let now = from; now <= until; now += 25) if (gaps.hasSilence(now)) silences.push(now);
  return silences;
}

describe("ReplyGaps", () => {
  it("finds no gap while each message follows the one before, over rests too", () => {
    const gaps = new ReplyGaps();
    const kinds = ["beat", "replies", "replies", "rest", "beat", "replies", "rest"] as const;
    expect(kinds.map((kind, i) => gaps.receive(mark(i + 1, kind), i))).toEqual(kinds.map(() => "next"));
  });

  it("finds a gap where a message is missing, once, whatever kind the next one has", () => {
    for (const kind of ["beat", "replies", "rest"] as const) {
      const gaps = new ReplyGaps();
      gaps.receive(mark(1), 0);
      expect(gaps.receive(mark(3, kind), 1)).toBe("after a gap");
      expect(gaps.receive(mark(4), 2)).toBe("next");
    }
  });

  it("takes a worker that it does not know as one that it missed, unless it begins", () => {
    expect(new ReplyGaps().receive(mark(1), 0)).toBe("next");
    expect(new ReplyGaps().receive(mark(2), 0)).toBe("after a gap");
    const gaps = new ReplyGaps();
    gaps.receive(mark(1), 0);
    expect(gaps.receive(mark(1, "replies", 1, "w2"), 0)).toBe("next");
  });

  it("drops what it was sent before", () => {
    const gaps = new ReplyGaps();
    for (const number of [1, 2, 3]) gaps.receive(mark(number), 0);
    for (const number of [1, 2, 3]) expect(gaps.receive(mark(number), 0)).toBe("old");
    gaps.receive(mark(1, "beat", 2), 0);
    expect(gaps.receive(mark(4), 0)).toBe("old");
    expect(gaps.receive(mark(2, "replies", 2), 0)).toBe("next");
  });

  it("finds a gap between two channels only where the end of the first is missing", () => {
    const rested = new ReplyGaps();
    rested.receive(mark(1, "rest"), 0);
    expect(rested.receive(mark(1, "beat", 2), 0)).toBe("next");
    const cut = new ReplyGaps();
    cut.receive(mark(1, "beat"), 0);
    expect(cut.receive(mark(1, "beat", 2), 0)).toBe("after a gap");
  });

  it("looks eight times, a second apart, for a worker that fell silent, and never for one at rest", () => {
    const gaps = new ReplyGaps();
    gaps.receive(mark(1, "beat"), 0);
    gaps.receive(mark(1, "rest", 1, "w2"), 0);
    expect(silencesUntil(gaps, 0, 60_000)).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((seconds) => seconds * 1_000));
  });

  it("looks no more once the worker is heard of", () => {
    const gaps = new ReplyGaps();
    gaps.receive(mark(1, "beat"), 0);
    expect(silencesUntil(gaps, 0, 2_500)).toEqual([1_000, 2_000]);
    gaps.receive(mark(2, "rest"), 2_500);
    expect(silencesUntil(gaps, 2_500, 9_000)).toEqual([]);
  });

  it("forgets workers that are at rest, not those that it listens for", () => {
    const gaps = new ReplyGaps();
    gaps.receive(mark(5, "beat", 1, "awake"), 0);
    gaps.receive(mark(5, "rest", 1, "resting"), 0);
    for (let i = 0; i < 10_000; i++) gaps.receive(mark(1, "rest", 1, `w${i}`), 0);
    expect(gaps.receive(mark(5, "beat", 1, "awake"), 0)).toBe("old");
    expect(gaps.receive(mark(5, "rest", 1, "resting"), 0)).toBe("after a gap");
  });
});
