import { describe, expect, it } from "vitest";
import { holdsRedisUser, natsUrlFault, redisPlace, redisUrlFault, withRedisUser, withTlsFiles } from "./broker-url.js";

describe("the address of Redis", () => {
  it.each([
    "redis://127.0.0.1:6379",
    "redis://cache",
    "redis://:secret@cache:6380/2",
    "rediss://user:secret@cache.example.com:6380",
    "redis://[::1]:6379",
    "REDIS://cache:6379",
    "/run/redis/redis.sock",
    "cache:6379",
    "10.0.0.1:6379",
  ])("may be %s", (url) => {
    expect(redisUrlFault(url)).toBeUndefined();
  });

  it.each([
    ["http://cache:6379", "http:// is not known"],
    ["redis+proxy://a:6379", "redis+proxy:// is not known"],
    ["nats://cache:4222", "nats:// is not known"],
    ["redis:/cache", "it names no scheme"],
    ["redis://", "no URL with a host"],
    ["redis://cache:99999", "no URL with a host"],
    ["redis+sentinel://a:26379,b:26379", "must end in the name that the Sentinels know"],
    ["redis+sentinel://a:26379/main/x", "must end in the name that the Sentinels know"],
    ["redis+sentinel://a:26379/main?db=1", "has a parameter that is not known: there are sentinel_username"],
    ["redis+cluster://a:6379?sentinel_password=x", "has a parameter that is not known"],
    ["redis+sentinel:///main", "must name hosts"],
    ["redis+sentinel://a:99999/main", "must name hosts"],
    ["redis+sentinel://a:0/main", "must name hosts"],
    ["redis+cluster://a:6379,", "must name hosts"],
    ["redis+cluster://a:6379,b:6379/2", "a Cluster has no databases"],
    ["redis+cluster://%zz@a:6379", "percent-encoding"],
  ])("may not be %s", (url, fault) => {
    expect(redisUrlFault(url)).toContain(fault);
    expect(() => redisPlace(url)).toThrow(fault);
  });

  it.each([
    "http://user:hunter2@cache:6379",
    "redis+sentinel://:hunter2@a:26379",
    "redis+sentinel://a:26379/main?password=hunter2",
    "redis+cluster://:hunter2@a:6379,b:x",
    "redis://:hunter2@cache:99999",
  ])("is never repeated: it may hold a password, as %s does", (url) => {
    expect(redisUrlFault(url)).toBeDefined();
    expect(redisUrlFault(url)).not.toContain("hunter2");
  });

  it("may name the Sentinels of a primary, with its database and Redis's own credentials", () => {
    expect(redisPlace("redis+sentinel://a,10.0.0.2:26380,[::1]:26381/main")).toEqual({
      kind: "sentinel",
      sentinels: [
        { host: "a", port: 26_379 },
        { host: "10.0.0.2", port: 26_380 },
        { host: "::1", port: 26_381 },
      ],
      sentinelCredentials: { username: undefined, password: undefined },
      name: "main",
      db: 0,
      tls: undefined,
      username: undefined,
      password: undefined,
    });
    expect(redisPlace("rediss+sentinel://baton:a%40b:c@a/main.eu-1/3?sentinel_password=d%26e")).toMatchObject({
      sentinelCredentials: { username: undefined, password: "d&e" },
      name: "main.eu-1",
      db: 3,
      tls: {},
      username: "baton",
      password: "a@b:c",
    });
  });

  it("may name some nodes of a Cluster", () => {
    expect(redisPlace("redis+cluster://:secret@a:7000,b")).toEqual({
      kind: "cluster",
      nodes: [
        { host: "a", port: 7_000 },
        { host: "b", port: 6_379 },
      ],
      tls: undefined,
      username: undefined,
      password: "secret",
    });
    expect(redisPlace("REDISS+CLUSTER://a")).toMatchObject({ kind: "cluster", tls: {} });
  });

  it("may be one server's, as the client takes it", () => {
    expect(redisPlace("cache:6379")).toEqual({ kind: "server", url: "redis://cache:6379", tls: undefined });
    expect(redisPlace("/run/redis.sock")).toEqual({ kind: "server", url: "/run/redis.sock", tls: undefined });
    expect(redisPlace("rediss://:s@cache/2")).toEqual({
      kind: "server",
      url: "rediss://:s@cache/2",
      tls: {},
    });
  });

  it("take files for TLS", () => {
    const files = { ca: "/etc/a b/ca.pem", cert: "/c&d.pem", key: "/k=e.pem" };
    expect(redisPlace(withTlsFiles("rediss://:s@cache/2?family=6", files))).toEqual({
      kind: "server",
      url: "rediss://:s@cache/2?family=6",
      tls: files,
    });
    const url = "rediss+sentinel://a,b/main?sentinel_username=a&sentinel_password=b";
    const sentinels = redisPlace(withTlsFiles(url, { ca: "/ca" }));
    expect(sentinels).toMatchObject({ kind: "sentinel", tls: { ca: "/ca" } });
    expect(redisPlace(withTlsFiles("rediss+cluster://u:p@a,b", files))).toMatchObject({ username: "u", tls: files });
    expect(redisUrlFault(withTlsFiles("redis://a", files))).toBe("is not for TLS");
  });

  it("take a user beside the address", () => {
    const secret = "p@ss/w?rd&%";
    const coded = "p%40ss%2Fw%3Frd%26%25";
    expect(withRedisUser("cache:6379", "worker", secret)).toBe(`redis://worker:${coded}@cache:6379`);
    expect(withRedisUser("rediss://cache/2", undefined, secret)).toBe(`rediss://:${coded}@cache/2`);
    expect(withRedisUser("/run/redis.sock?db=2", "worker", secret)).toBe(
      `/run/redis.sock?db=2&username=worker&password=${coded}`,
    );
    const user = { username: "worker", password: secret };
    const own = "sentinel_username=a&sentinel_password=b";
    expect(redisPlace(withRedisUser(`redis+sentinel://a,b/main?${own}`, "worker", secret))).toMatchObject(user);
    expect(redisPlace(withRedisUser("redis+cluster://a,b", "worker", secret))).toMatchObject(user);
  });

  it("say whether they hold a user", () => {
    const own = "sentinel_username=a&sentinel_password=b@c";
    const without = ["cache:6379", "/run/re@dis.sock", `redis+sentinel://a,b/main?${own}`, "redis://a/0?family=6"];
    expect(without.filter(holdsRedisUser)).toEqual([]);
    const holding = ["redis://:s@cache", "redis+cluster://u@a,b", "/run/redis.sock?username=u", "redis://a?password=s"];
    expect(holding.filter(holdsRedisUser)).toEqual(holding);
  });
});

describe("the addresses of NATS", () => {
  it.each([
    "nats://127.0.0.1:4222",
    "nats://a:4222, nats://b:4222",
    "localhost:4222",
    "a",
    "nats://[::1]:4222",
    "tls://a:4222",
  ])("may be %s", (urls) => {
    expect(natsUrlFault(urls)).toBeUndefined();
  });

  it.each([
    ["http://a:4222", "http:// is not known"],
    ["wss://a:4222", "wss:// is not known"],
    ["nats://a:4222,redis://b:6379", "redis:// is not known"],
    ["nats://a:4222,", "no URL with a host"],
    ["nats://me:hunter2@a:4222", "must not hold credentials"],
  ])("may not be %s", (urls, fault) => {
    const said = natsUrlFault(urls);
    expect(said).toContain(fault);
    expect(said).not.toContain("hunter2");
  });
});
