import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { useLab } from "../support/queue/lab.js";

describe("a primary that became a replica", () => {
  const lab = useLab();

  it("is left for the server that has its address now, and the refused write is not resent", async () => {
    await lab.redis.call("REPLICAOF", "127.0.0.1", "1");
    const left = once(lab.redis, "close");
    await expect(lab.admitRequest("r1")).rejects.toThrow(/^READONLY/);
    await left;
    await expect.poll(() => lab.redis.status).toBe("ready");
    await lab.redis.call("REPLICAOF", "NO", "ONE");
    expect(await lab.admitRequest("r1")).toEqual({ said: "admitted" });
  });
});
