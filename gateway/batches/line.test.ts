import { describe, expect, it } from "vitest";
import { customIdOf, readLine } from "./line.js";

const endpoint = "/v1/chat/completions";
const good = { custom_id: "a", method: "POST", url: endpoint, body: { model: "m", n: 1 } };

function read(line: unknown, isDuplicate = false) {
  const text = typeof line === "string" ? line : JSON.stringify(line);
  return readLine({ number: 1, end: text.length, bytes: Buffer.from(text) }, endpoint, isDuplicate);
}

describe("a line of a batch's file", () => {
  it("has the body's own bytes, whatever numbers and spaces are in them", () => {
    const line = `{"custom_id":"a","method":"POST","url":"${endpoint}", "body": {"seed": 18446744073709551615} }\r`;
    expect(read(line)).toEqual({ customId: "a", body: Buffer.from('{"seed": 18446744073709551615}') });
  });

  it.each([
    ["invalid_json", "{"],
    ["invalid_json", "[]"],
    ["invalid_json", '{"custom_id":"a",}'],
    ["missing_custom_id", { ...good, custom_id: undefined }],
    ["missing_custom_id", { ...good, custom_id: "" }],
    ["missing_custom_id", { ...good, custom_id: 7 }],
    ["missing_custom_id", { ...good, custom_id: "x".repeat(513) }],
    ["invalid_method", { ...good, method: "GET" }],
    ["invalid_method", { ...good, method: undefined }],
    ["invalid_url", { ...good, url: "/v1/completions" }],
    ["invalid_body", { ...good, body: undefined }],
    ["invalid_body", { ...good, body: "text" }],
    ["invalid_body", { ...good, body: { ...good.body, stream: true } }],
  ])("is refused as %s", (code, line) => {
    expect(read(line).fault?.code).toBe(code);
  });

  it("is refused where its id has come before, and where it is too long", () => {
    expect(read(good, true)).toMatchObject({ customId: "a", fault: { code: "duplicate_custom_id" } });
    const long = { number: 1, end: 9, bytes: undefined };
    expect(readLine(long, endpoint, false)).toMatchObject({ customId: undefined, fault: { code: "line_too_long" } });
  });

  it("is taken where it says that it wants no stream, or has many members", () => {
    expect(read({ ...good, body: { ...good.body, stream: false } }).fault).toBeUndefined();
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`member${i}`, i]));
    expect(read({ ...good, body: many }).fault).toBeUndefined();
  });

  it("is not refused for bytes that are no UTF-8 in another way than as invalid JSON", () => {
    const bytes = Buffer.concat([Buffer.from('{"custom_id":"'), Buffer.from([0xff]), Buffer.from('"}')]);
    expect(readLine({ number: 1, end: 20, bytes }, endpoint, false).fault?.code).toBe("invalid_json");
    expect(customIdOf(bytes)).toBeUndefined();
  });
});
