import { describe, expect, it } from "vitest";
import { natsUrlFault, redisUrlFault } from "./broker-url.js";

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
    ["redis+sentinel://a:26379,b:26379/main", "redis+sentinel:// is not known"],
    ["redis+cluster://a:6379", "redis+cluster:// is not known"],
    ["nats://cache:4222", "nats:// is not known"],
    ["redis:/cache", "it names no scheme"],
    ["redis://", "no URL with a host"],
    ["redis://cache:99999", "no URL with a host"],
  ])("may not be %s", (url, fault) => {
    expect(redisUrlFault(url)).toContain(fault);
  });

  it("is never repeated: it may hold a password", () => {
    expect(redisUrlFault("http://user:hunter2@cache:6379")).not.toContain("hunter2");
  });
});

describe("the addresses of NATS", () => {
  it.each(["nats://127.0.0.1:4222", "nats://a:4222, nats://b:4222", "localhost:4222", "a", "nats://[::1]:4222"])(
    "may be %s",
    (urls) => {
      expect(natsUrlFault(urls)).toBeUndefined();
    },
  );

  it.each([
    ["http://a:4222", "http:// is not known"],
    ["tls://a:4222", "tls:// is not known"],
    ["nats://a:4222,redis://b:6379", "redis:// is not known"],
    ["nats://a:4222,", "no URL with a host"],
    ["nats://me:hunter2@a:4222", "must not hold credentials"],
  ])("may not be %s", (urls, fault) => {
    const said = natsUrlFault(urls);
    expect(said).toContain(fault);
    expect(said).not.toContain("hunter2");
  });
});
