import { describe, expect, it } from "vitest";
import { sequenceName } from "#shared/queue/address.js";
import { encodeCorrelationId } from "#shared/contract/sequence.js";
import { beginning, placeText, readPlace } from "../requests/place.js";
import { readSequenceId, sequenceIdOf } from "./sequence-id.js";

const refused = expect.objectContaining({ code: "invalid_argument" }) as unknown;

describe("a sequence's name in a path", () => {
  it.each([
    ["42", undefined, 42n],
    ["18446744073709551615", undefined, 2n ** 64n - 1n],
    ["42", "string", "42"],
    ["a%2Fb%20c", undefined, "a/b c"],
    ["4x", undefined, "4x"],
    ["%34%32", undefined, 42n],
    ["42", "uint64", 42n],
  ])("%s (%s) is %s, and reads the same in an answer", (segment, type, value) => {
    const id = readSequenceId(segment, type);
    expect(id.value).toBe(value);
    expect(sequenceIdOf(sequenceName("acme", encodeCorrelationId(id)))).toBe(value);
  });

  it.each([
    ["18446744073709551616", undefined],
    ["1", "int"],
    ["x", "uint64"],
    ["%ff", undefined],
    ["%", "string"],
  ])("%s (%s) is none", (segment, type) => {
    expect(() => readSequenceId(segment, type)).toThrow(refused);
  });
});

describe("where a page begins", () => {
  it("comes back as it was", () => {
    const place = { bucket: 3, cursor: "17", after: "acme:u1" };
    expect(readPlace(placeText(place), 4)).toEqual(place);
    expect(readPlace(placeText(beginning), 1)).toEqual(beginning);
  });

  it.each([
    ["x"],
    [""],
    [placeText({ bucket: 4, cursor: "0", after: "" })],
    [placeText({ ...beginning, cursor: "-1" })],
  ])("is refused as %s", (text) => {
    expect(() => readPlace(text, 4)).toThrow(refused);
  });
});
