import { describe, expect, it } from "vitest";
import { readConversation } from "./conversation.js";

describe("the turn of a conversation", () => {
  const id = { kind: "string", value: "a" };

  it("says which one it is, if the client says so", () => {
    expect(readConversation({ sequence_id: "a" })).toEqual({ id, start: false, end: false });
    expect(readConversation({ sequence_id: "a", sequence_step: 3 })).toEqual({
      id,
      start: false,
      end: false,
      number: 3,
    });
    expect(readConversation({ sequence_id: "a", sequence_start: true, sequence_step: 1 })).toMatchObject({ number: 1 });
    expect(readConversation({})).toBeUndefined();
  });

  it.each([
    [{ sequence_step: 1 }, "only for a request of a sequence"],
    [{ sequence_id: "a", sequence_step: 0 }, "an integer of at least 1"],
    [{ sequence_id: "a", sequence_step: "2" }, "an integer of at least 1"],
    [{ sequence_id: "a", sequence_start: true, sequence_step: 2 }, "is step 1 of its sequence"],
  ])("is refused by name: %j", (body, why) => {
    expect(() => readConversation(body)).toThrow(
      expect.objectContaining({ code: "invalid_argument", message: expect.stringContaining(why) as unknown }),
    );
  });
});
