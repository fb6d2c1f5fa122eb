import { describe, expect, it } from "vitest";
import { verdictOn } from "./verdict.js";

const NOW = Date.UTC(2026, 10, 22);
const answered = (status: number | null, retryAfter?: string) => ({ status, error: null, ms: 1, retryAfter });
const verdict = (status: number | null, { tries = 1, lot = 0, retryAfter = undefined as string | undefined } = {}) =>
  verdictOn(answered(status, retryAfter), tries, [1_000, 60_000], lot, NOW);

describe("verdictOn", () => {
  it("takes 2xx for delivered, 410 for gone, and all else for worth another attempt", () => {
    for (const status of [200, 204, 299]) expect(verdict(status)).toEqual({ said: "delivered" });
    expect(verdict(410)).toEqual({ said: "gone" });
    for (const status of [null, 301, 302, 400, 404, 429, 500, 503, 600]) {
      expect(verdict(status)).toEqual({ said: "again", inMs: 1_000 });
    }
  });

  it("waits as the schedule says, a little longer by lot, and ends with it", () => {
    expect(verdict(500, { tries: 2 })).toEqual({ said: "again", inMs: 60_000 });
    expect(verdict(500, { tries: 2, lot: 0.5 })).toEqual({ said: "again", inMs: 63_000 });
    expect(verdict(500, { tries: 3 })).toEqual({ said: "failed" });
    expect(verdict(410, { tries: 3 })).toEqual({ said: "gone" });
  });

  it("waits for longer where Retry-After asks for it, up to a day", () => {
    const inMs = (retryAfter: string) => {
      const said = verdict(503, { retryAfter });
      return said.said === "again" ? said.inMs : said.said;
    };
    expect(inMs("120")).toBe(120_000);
    expect(inMs("0")).toBe(1_000);
    expect(inMs(new Date(NOW + 30_000).toUTCString())).toBe(30_000);
    expect(inMs(new Date(NOW - 30_000).toUTCString())).toBe(1_000);
    expect(inMs("9999999999")).toBe(86_400_000);
    for (const wrong of ["soon", "-5", "", "1e9"]) expect(inMs(wrong)).toBe(1_000);
  });
});
