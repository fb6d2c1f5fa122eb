/**
 * Several calls as one command of ioredis. A version of ioredis that changes what
 * shared/redis/send-calls.ts needs of it fails here.
 */
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { connectRedis, masterFor, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { encodeCalls, sendCalls } from "#shared/redis/send-calls.js";
import { inTransaction, lastReply, sendTogether, type Call } from "#shared/redis/transaction.js";
import { startRedis, type RedisServer } from "../support/brokers/redis.js";
import { Proxy } from "../support/fleet/proxy.js";
import { silentLog } from "../support/silent.js";

let server: RedisServer;
let proxy: Proxy;
let redis: RedisClient;

beforeAll(async () => {
  server = await startRedis();
  proxy = await Proxy.start(Number(new URL(server.url).port));
  redis = connectRedis({ url: `redis://127.0.0.1:${proxy.port}`, name: "calls", log: silentLog });
  await whenReady(redis, AbortSignal.timeout(60_000));
});
afterEach(async () => {
  proxy.heal();
  await whenReady(redis, AbortSignal.timeout(60_000));
});
afterAll(async () => {
  redis.disconnect();
  await proxy.dispose();
  await server.dispose();
});

/** Sends over the connection itself. */
function send(calls: readonly Call[]) {
  const sent = sendCalls(masterFor(redis, "any") ?? raise("no server"), calls);
  return sent ?? raise("nothing was sent");
}

function raise(message: string): never {
  throw new Error(message);
}

const echo = (text: string): Call => ["ECHO", text];
const repliesOf = async (calls: readonly Call[]) => (await send(calls)).map(([, reply]) => String(reply));

describe("calls that are sent as one command", () => {
  it("each have their reply, and so has every other command of the connection", async () => {
    const said = await Promise.all([
      redis.echo("a"),
      repliesOf(["b", "c", "d"].map(echo)),
      redis.echo("e"),
      repliesOf([echo("f")]),
      redis.echo("g"),
    ]);
    expect(said).toEqual(["a", ["b", "c", "d"], "e", ["f"], "g"]);
  });

  it("reach Redis byte for byte", async () => {
    const bytes = Buffer.from([0, 13, 10, 36, 255]);
    const long = "x".repeat(100_000);
    const texts = ["", "ä€\u{1f600}", "\r\n", long];
    const calls = texts.map(echo);
    expect(await repliesOf(calls)).toEqual(texts);
    const results = await send([["ECHO", bytes], ["ECHO", -12.5], ...calls, ["ECHO", Buffer.from(long)]]);
    expect(results[0]?.[1]).toEqual(bytes);
    expect(results.slice(1).map(([, reply]) => String(reply))).toEqual(["-12.5", ...texts, long]);
    expect(encodeCalls([["SET", "ä", bytes, 7]]).toString("latin1")).toBe(
      Buffer.concat([
        Buffer.from("*4\r\n$3\r\nSET\r\n$2\r\nä\r\n$5\r\n"),
        bytes,
        Buffer.from("\r\n$1\r\n7\r\n"),
      ]).toString("latin1"),
    );
  });

  it("fail each for itself", async () => {
    await redis.set("text", "no number");
    const results = await send([echo("a"), ["INCR", "text"], ["NOSUCH"], echo("b")]);
    expect(results.map(([error, reply]) => error?.message.slice(0, 13) ?? String(reply))).toEqual([
      "a",
      "ERR value is ",
      "ERR unknown c",
      "b",
    ]);
    expect(await redis.echo("after")).toBe("after");
  });

  it("are a transaction, whole or not at all", async () => {
    const set = (value: string): Call => ["SET", "key", value];
    const results = await sendTogether(redis, "key", inTransaction([set("1"), ["GET", "key"]]));
    expect(String(lastReply(results))).toBe("1");
    const refused = await sendTogether(redis, "key", inTransaction([set("2"), ["NOSUCH"], set("3")]));
    expect(() => lastReply(refused)).toThrow("unknown command");
    expect(await redis.get("key")).toBe("1");
  });

  it("fail together if the connection breaks, and leave nothing behind for the next connection", async () => {
    proxy.delay(50);
    const sent = send(["a", "b", "c"].map(echo));
    proxy.resetAll();
    await expect(sent).rejects.toThrow(/max retries/);
    await whenReady(redis, AbortSignal.timeout(60_000));
    expect(await Promise.all([redis.echo("d"), repliesOf(["e", "f"].map(echo))])).toEqual(["d", ["e", "f"]]);
  });

  it("time out as one command, whose late replies belong to no other", async () => {
    server.process.signalGroup("SIGSTOP");
    const late = send(["a", "b", "c"].map(echo));
    await expect(late).rejects.toThrow("Command timed out");
    const after = Promise.all([redis.echo("d"), repliesOf(["e", "f"].map(echo))]);
    server.process.signalGroup("SIGCONT");
    expect(await after).toEqual(["d", ["e", "f"]]);
  });

  it("say that the server refuses writes, and open another connection", async () => {
    const admin = connectRedis({ url: server.url, name: "admin", log: silentLog });
    await whenReady(admin, AbortSignal.timeout(60_000));
    await admin.call("REPLICAOF", "127.0.0.1", "1");
    const { stream } = masterFor(redis, "key") ?? raise("no server");
    const set = ["SET", "key", "2"] as const;
    await expect(sendTogether(redis, "key", inTransaction([set, set])).then(lastReply)).rejects.toThrow(/^READONLY/);
    await expect.poll(() => masterFor(redis, "key")?.stream !== stream && redis.status === "ready").toBe(true);
    await admin.call("REPLICAOF", "NO", "ONE");
    admin.disconnect();
    expect(await redis.echo("after")).toBe("after");
  });

  it("are sent again as a whole by a client that sends again", async () => {
    const own = new Redis(proxy.port, { maxRetriesPerRequest: null, retryStrategy: () => 20 });
    await own.ping();
    proxy.delay(50);
    const sent = sendCalls(own, ["a", "b"].map(echo)) ?? raise("nothing was sent");
    proxy.resetAll();
    proxy.heal();
    expect((await sent).map(([, reply]) => String(reply))).toEqual(["a", "b"]);
    own.disconnect();
  });

  it("are not sent over a connection that is not open", async () => {
    const closed = connectRedis({ url: server.url, name: "closed", log: silentLog });
    expect(sendCalls(masterFor(closed, "any") ?? raise("no server"), [echo("a")])).toBeUndefined();
    await expect(sendTogether(closed, "any", [echo("a")]).then(([one]) => one?.[0]?.message)).resolves.toMatch(
      /writeable/,
    );
    closed.disconnect();
  });
});
