import { describe, expect, it } from "vitest";
import { fixedError } from "#shared/errors.js";
import { askRedis, changeInRedis } from "./ask-redis.js";

describe.each([
  ["askRedis", askRedis],
  ["changeInRedis", changeInRedis],
])("%s", (_, ask) => {
  it("asks once more where Redis could not be reached", async () => {
    let calls = 0;
    const call = () => (++calls < 3 ? Promise.reject(new Error("Connection is closed.")) : Promise.resolve("said"));
    expect(await ask(call)).toBe("said");
    expect(calls).toBe(3);
  });

  it("asks once where the call itself refuses", async () => {
    let calls = 0;
    const refusal = fixedError("unknown_webhook", "usual");
    const call = () => {
      calls++;
      return Promise.reject(refusal);
    };
    await expect(ask(call)).rejects.toBe(refusal);
    expect(calls).toBe(1);
  });
});
