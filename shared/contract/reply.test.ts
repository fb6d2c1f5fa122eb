import { describe, expect, it } from "vitest";
import { decodeMark, decodeReplies, encodeMessage, isAuthentic, replyKey, type Mark, type Reply } from "./reply.js";

const secret = Buffer.alloc(32, 7);
const mark: Mark = { sender: "0123456789abcdef", channel: 3, number: 2 ** 40, kind: "replies" };
const replies: Reply[] = [
  { name: "r1", kind: "result", body: Buffer.from("answer") },
  { name: "tenant:r2", kind: "look", body: Buffer.alloc(0) },
  { name: "r3", kind: "error", body: Buffer.from("{}") },
];
const key = replyKey(secret, mark.sender, "gw-1");
const message = encodeMessage(key, mark, replies);

describe("a reply message", () => {
  it("is read as it was written", () => {
    expect(decodeMark(message)).toEqual(mark);
    expect(decodeReplies(message)).toEqual(replies);
    expect(isAuthentic(key, message)).toBe(true);
    expect(decodeReplies(encodeMessage(key, { ...mark, kind: "rest" }, []))).toEqual([]);
  });

  it("is authentic for its gateway and its sender alone, and only as it was made", () => {
    expect(isAuthentic(replyKey(secret, mark.sender, "gw-2"), message)).toBe(false);
    expect(isAuthentic(replyKey(secret, "fedcba9876543210", "gw-1"), message)).toBe(false);
    expect(isAuthentic(replyKey(Buffer.alloc(32, 8), mark.sender, "gw-1"), message)).toBe(false);
    for (const at of message.keys()) {
      const forged = Buffer.from(message);
      forged.writeUInt8(forged.readUInt8(at) ^ 1, at);
      expect(isAuthentic(key, forged)).toBe(false);
    }
  });

  it("is refused where it is cut short", () => {
    for (const bytes of [0, 15, 35]) expect(() => decodeMark(message.subarray(0, bytes))).toThrow(RangeError);
    for (const bytes of [37, 40, message.length - 1]) {
      expect(() => decodeReplies(message.subarray(0, bytes))).toThrow();
    }
  });
});
