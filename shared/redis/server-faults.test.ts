import { describe, expect, it } from "vitest";
import { serverFindings, type Expected, type ServerFacts } from "./server-faults.js";

const info = {
  redis_version: "7.0.15",
  redis_mode: "standalone",
  cluster_enabled: "0",
  maxmemory_policy: "noeviction",
  aof_enabled: "1",
  role: "master",
  connected_slaves: "0",
};
const config = { appendfsync: "always", "min-replicas-to-write": "0", "min-replicas-max-lag": "10" };

function found(facts: Partial<ServerFacts>, expected: Partial<Expected> = {}) {
  const all = { info: { ...info, ...facts.info }, config: "config" in facts ? facts.config : config };
  return serverFindings(all, { durability: "strict", inCluster: false, ...expected });
}
const nothing = { refusals: [], warnings: [] };

describe("a server", () => {
  it("that syncs each write fits strict, and fast, which is said to promise less", () => {
    expect(found({})).toEqual(nothing);
    const { refusals, warnings } = found({}, { durability: "fast" });
    expect([refusals, warnings.length]).toEqual([[], 1]);
    expect(warnings[0]).toMatch(/^BATON_DURABILITY is fast: up to a second/);
  });

  it.each([
    ["too old", { redis_version: "6.2.1" }, "Redis 6.2.1 is too old: Baton needs 7.0"],
    ["evicting", { maxmemory_policy: "allkeys-lru" }, "maxmemory-policy allkeys-lru: it would throw queued work away"],
    ["without a file", { aof_enabled: "0" }, "appendonly no: a restart would lose work. Type `redis-cli CONFIG SET"],
    ["a Sentinel", { redis_mode: "sentinel" }, "this is a Sentinel: set BATON_REDIS_URL to redis+sentinel://"],
    ["a node of a Cluster", { cluster_enabled: "1" }, "a node of a Cluster: set BATON_REDIS_URL to redis+cluster://"],
  ])("that is %s is refused", (_, fields, words) => {
    expect(found({ info: { ...fields } }).refusals.join()).toContain(words);
  });

  it("that is a node of a Cluster fits a Cluster's URL", () => {
    expect(found({ info: { cluster_enabled: "1" } }, { inCluster: true })).toEqual(nothing);
  });

  it.each([
    [
      "strict",
      "everysec",
      "CONFIG SET appendfsync always`, and write it into redis.conf, or set BATON_DURABILITY to fast",
    ],
    ["strict", "no", "CONFIG SET appendfsync always"],
    ["fast", "no", "CONFIG SET appendfsync everysec"],
    ["replicated", "everysec", "CONFIG SET appendfsync always"],
  ] as const)("of the mode %s is refused with appendfsync %s", (durability, appendfsync, words) => {
    const replicas = { "min-replicas-to-write": "1" };
    const { refusals } = found({ config: { ...config, ...replicas, appendfsync } }, { durability });
    expect(refusals).toHaveLength(1);
    expect(refusals[0]).toContain(`BATON_DURABILITY is ${durability}, but Redis has appendfsync ${appendfsync}`);
    expect(refusals[0]).toContain(words);
  });

  it("of the mode fast may sync every second", () => {
    expect(found({ config: { ...config, appendfsync: "everysec" } }, { durability: "fast" }).refusals).toEqual([]);
  });

  it("of the mode replicated must refuse writes without a replica, and says when there is none", () => {
    const replicated = { durability: "replicated" } as const;
    expect(found({}, replicated).refusals.join()).toContain("CONFIG SET min-replicas-to-write 1");
    const one = { ...config, "min-replicas-to-write": "1" };
    expect(found({ config: { ...one, "min-replicas-max-lag": "0" } }, replicated).refusals.join()).toContain(
      "CONFIG SET min-replicas-max-lag 2",
    );
    expect(found({ config: one }, replicated)).toEqual({
      refusals: [],
      warnings: ["no replica is connected: Redis refuses writes until there is one"],
    });
    expect(found({ config: one, info: { connected_slaves: "1" } }, replicated)).toEqual(nothing);
  });

  it("that forbids CONFIG is taken, and it is said that nothing could be checked", () => {
    const { refusals, warnings } = found({ config: undefined, info: { aof_enabled: "0" } });
    expect(refusals).toEqual([]);
    expect(warnings.join()).toContain("it cannot be checked that Redis does its part: it refuses CONFIG GET");
  });

  it("whose replicas may lack acknowledged work is reported, and so is a replica", () => {
    expect(found({ info: { connected_slaves: "2" } }).warnings.join()).toContain(
      "a failover loses what a replica has not",
    );
    expect(found({ info: { role: "slave" } }).warnings.join()).toContain("this Redis is a replica and refuses writes");
  });
});
