import { describe, expect, it } from "vitest";
import { clientNames, monitored, Tally } from "./monitor.js";

describe("monitored", () => {
  it("reads who sent what, and counts bytes and not their escapes", () => {
    const line = String.raw`+1763800000.123456 [0 127.0.0.1:40001] "EVALSHA" "0123abcd" "1" "ready:{3}" "a\"b\\c" "\x00\xff\n"`;
    expect(monitored(line)).toEqual({ source: "127.0.0.1:40001", command: "evalsha", argumentBytes: [8, 1, 9, 5, 3] });
  });

  it("knows a script's own command, and one without arguments", () => {
    expect(monitored('+1.5 [0 lua] "time"')).toEqual({ source: "lua", command: "time", argumentBytes: [] });
  });

  it.each(["+OK", "", "-ERR unknown command"])("takes %j for no command", (line) => {
    expect(monitored(line)).toBeUndefined();
  });
});

describe("Tally", () => {
  it("adds a script's commands to the client that called it", () => {
    const tally = new Tally();
    const lines = [
      '1.0 [0 a:1] "EVALSHA" "0123" "1" "key" "argument"',
      '1.0 [0 lua] "hget" "key" "field"',
      '1.0 [0 lua] "hset" "key" "field" "value"',
      '1.0 [0 b:2] "HGET" "key" "field"',
      '1.0 [0 b:2] "evalsha" "4567" "0"',
      '1.0 [0 lua] "hget" "key" "field"',
      '1.0 [0 a:1] "hget" "key" "field"',
    ];
    for (const line of lines) tally.add(monitored(line) ?? { source: "", command: "", argumentBytes: [] });
    expect(tally.calls).toEqual(
      new Map([
        ["a:1", new Map(Object.entries({ evalsha: 1, hget: 2, hset: 1 }))],
        ["b:2", new Map(Object.entries({ hget: 2, evalsha: 1 }))],
      ]),
    );
    expect(tally.scriptBytes).toBe("key".length + "argument".length);
  });
});

it("finds the names of connections", () => {
  const list =
    "id=3 addr=127.0.0.1:51000 laddr=127.0.0.1:6379 fd=8 name=gw-1 age=1 idle=0 flags=N\n" +
    "id=4 addr=127.0.0.1:51002 laddr=127.0.0.1:6379 fd=9 name= age=1 idle=0 flags=N\n";
  expect(clientNames(list)).toEqual(
    new Map([
      ["127.0.0.1:51000", "gw-1"],
      ["127.0.0.1:51002", ""],
    ]),
  );
});
