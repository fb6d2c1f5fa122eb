import { describe, expect, it } from "vitest";
import { Away, Refusal } from "../client/refusal.js";
import { countOf, summaryOf } from "./summary.js";

const noun = ["job", "jobs"] as const;

describe("summaryOf", () => {
  it("counts the things that were changed", () => {
    expect(summaryOf("Cancel", noun, 1, [])).toEqual({ isWhole: true, text: "Cancel: 1 job." });
    expect(countOf(1_200, noun)).toBe("1,200 jobs");
  });

  it("says each reason once, with its count and a request", () => {
    const ended = (id: string) => new Refusal(409, "already_ended", "the request has ended", id);
    expect(summaryOf("Cancel", noun, 3, [ended("r-1"), new Away("the gateway does not answer"), ended("r-2")])).toEqual(
      {
        isWhole: false,
        text:
          "Cancel: 3 of 6 jobs. Failed: 2 × already_ended – the request has ended (request r-1); " +
          "1 × the gateway does not answer.",
      },
    );
  });
});
