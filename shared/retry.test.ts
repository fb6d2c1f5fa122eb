import { createRequire } from "node:module";
import { describe, expect, it } from "vitest";
import { isTransient, refusesWrites } from "./retry.js";

const { ReplyError } = createRequire(import.meta.url)("ioredis") as { ReplyError: new (message: string) => Error };

describe("an answer of Redis", () => {
  it.each([
    "LOADING Redis is loading the dataset in memory",
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "READONLY You can't write against a read only replica.",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
    "MOVED 3999 127.0.0.1:6381",
    "ASK 3999 127.0.0.1:6381",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "CLUSTERDOWN The cluster is down",
    "CLUSTERDOWN Hash slot not served",
    "NOREPLICAS Not enough good replicas to write.",
    "MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist on disk.",
    "OOM command not allowed when used memory > 'maxmemory'.",
  ])("may be another one later: %s", (message) => {
    expect(isTransient(new ReplyError(message))).toBe(true);
  });

  it.each([
    "ERR unknown command 'HMGTE'",
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "NOSCRIPT No matching script. Please use EVAL.",
    "NOGROUP No such key 'ready' or consumer group 'workers'",
    "BUSYGROUP Consumer Group name already exists",
    "CROSSSLOT Keys in request don't hash to the same slot",
    "NOPERM this user has no permissions to run the 'config|get' command",
    "WRONGPASS invalid username-password pair or user is disabled.",
  ])("stays as it is: %s", (message) => {
    expect(isTransient(new ReplyError(message))).toBe(false);
  });

  it("refuses all writes where it is full, cannot save, or lacks replicas", () => {
    const codes = ["OOM command", "MISCONF Redis", "NOREPLICAS Not", "READONLY You", "CLUSTERDOWN The"];
    expect(codes.map((message) => refusesWrites(new ReplyError(message)))).toEqual([true, true, true, false, false]);
  });
});

describe("another error", () => {
  it("may pass where the link failed, and not where the program is wrong", () => {
    expect(isTransient(new Error("Connection is closed."))).toBe(true);
    expect(isTransient(new TypeError("expected an array reply"))).toBe(false);
    expect(isTransient("no error")).toBe(false);
  });
});
