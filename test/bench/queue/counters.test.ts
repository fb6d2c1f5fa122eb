import { describe, expect, it } from "vitest";
import { allCalls, countersIn, cpuPercent, describeCalls, innerCalls, isScript, spentBetween } from "./counters.js";

/** The output of Redis 7.0, shortened. */
function info(calls: Readonly<Record<string, number>>, more: Readonly<Record<string, number>> = {}): string {
  const fields = {
    connected_clients: 3,
    used_memory: 1_000,
    aof_current_size: 500,
    total_net_input_bytes: 10_000,
    used_cpu_sys: 1.5,
    used_cpu_user: 2.25,
    used_cpu_sys_main_thread: 1,
    used_cpu_user_main_thread: 2,
    ...more,
  };
  return [
    "# Server",
    "redis_version:7.0.15",
    ...Object.entries(fields).map(([name, value]) => `${name}:${value}`),
    "# Commandstats",
    ...Object.entries(calls).map(
      ([name, count]) => `cmdstat_${name}:calls=${count},usec=9,usec_per_call=4.50,rejected_calls=0,failed_calls=0`,
    ),
    "",
  ].join("\r\n");
}

describe("countersIn", () => {
  it("reads calls, times and sizes", () => {
    expect(countersIn(info({ get: 7, "config|set": 1 }), 4)).toEqual({
      at: 4,
      calls: new Map([
        ["get", 7],
        ["config|set", 1],
      ]),
      cpuMs: 3_750,
      mainThreadMs: 3_000,
      inputBytes: 10_000,
      fileBytes: 500,
      memoryBytes: 1_000,
      clients: 3,
    });
  });

  it("names a number that is not there", () => {
    expect(() => countersIn("# Server\r\n", 0)).toThrow("Redis says no used_cpu_user");
  });

  it("knows a server without an append-only file", () => {
    const without = info({}).replace("aof_current_size:500\r\n", "");
    const from = countersIn(without, 0);
    expect(from.fileBytes).toBeUndefined();
    expect(spentBetween(from, from).fileBytes).toBeNaN();
  });
});

describe("spentBetween", () => {
  const from = countersIn(info({ get: 7, info: 1 }), 1_000);
  const more = { used_cpu_user: 2.5, used_cpu_user_main_thread: 2.125, total_net_input_bytes: 11_000 };
  const to = countersIn(info({ get: 9, info: 2, set: 3 }, { ...more, aof_current_size: 740 }), 3_500);

  it("subtracts, and leaves out what the benchmark asks itself", () => {
    expect(spentBetween(from, to)).toEqual({
      seconds: 2.5,
      calls: new Map([
        ["get", 2],
        ["set", 3],
      ]),
      cpuMs: 250,
      mainThreadMs: 125,
      inputBytes: 1_000,
      fileBytes: 240,
    });
  });

  it("says the percent of a core", () => {
    expect(cpuPercent(spentBetween(from, to))).toBe(10);
  });
});

describe("calls", () => {
  const calls = new Map([
    ["set", 5],
    ["evalsha", 100],
    ["exec", 10],
    ["hget", 1_200],
    ["time", 1],
  ]);

  it("counts what scripts do beside their calls, or instead of them", () => {
    expect(allCalls(calls)).toBe(1_316);
    expect(innerCalls(calls)).toBe(1_206);
    expect(["evalsha", "fcall_ro", "exec", "get"].map(isScript)).toEqual([true, true, false, false]);
  });

  it("describes the most frequent first, and nothing that rounds to zero", () => {
    expect(describeCalls(calls, 1_000)).toBe("hget 1.20, evalsha 0.10, exec 0.01, set 0.01");
  });
});
