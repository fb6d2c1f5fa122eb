import { describe, expect, it } from "vitest";
import { placeText, readPlace } from "./place.js";

const BUCKETS = 16;

describe("where the next page begins", () => {
  it.each(["0", "17", "18446744073709551615"])("comes back as it was at the cursor %s", (cursor) => {
    const place = { bucket: 3, cursor, after: "default:u1" };
    expect(readPlace(placeText(place), BUCKETS)).toEqual(place);
  });

  it.each([
    ["no such bucket", { bucket: BUCKETS, cursor: "0", after: "" }],
    ["a cursor that is no number", { bucket: 0, cursor: "x", after: "" }],
    ["a cursor of more than 64 bits", { bucket: 0, cursor: "9".repeat(20), after: "" }],
  ])("is refused with %s", (_, place) => {
    expect(() => readPlace(placeText(place), BUCKETS)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });
});
