import { connect, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { connectBlockingReader } from "#shared/redis/connect.js";
import { Reader } from "../../worker/lane/reader.js";
import { Proxy } from "../support/fleet/proxy.js";
import { lanesByKey, type Taken } from "#shared/queue/work/stream.js";
import { admitRequest, useLab, type Lab } from "../support/queue/lab.js";
import { silentLog } from "../support/silent.js";

function read({ queue }: Lab, port: number) {
  const link = { url: `redis://127.0.0.1:${port}`, name: "reader", log: silentLog };
  const redis = connectBlockingReader(link);
  const seen: string[] = [];
  const accept = ({ deliveries }: Taken) => seen.push(...deliveries.map(({ request }) => request));
  const reader = new Reader({ redis, commands: queue.redis, consumer: queue.consumer, log: silentLog });
  reader.add({ lanes: lanesByKey([queue.lane]), intake: { room: () => 8, accept } });
  return { seen, close: () => reader.stop() };
}

describe("the reader", () => {
  const lab = useLab();
  const undo: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const step of undo.splice(0).reverse()) await step();
  });

  it("gives up connections that open and then stay silent, one after the other", async () => {
    const sockets: Socket[] = [];
    const server = createServer((client) => {
      sockets.push(client.on("error", () => undefined));
      if (sockets.length <= 2) return;
      const upstream = connect(Number(new URL(lab.url).port), "127.0.0.1").on("error", () => undefined);
      client.pipe(upstream).pipe(client);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    undo.push(async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    });
    await admitRequest(lab, "r1");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const reader = read(lab, address.port);
    undo.push(() => reader.close());
    await expect.poll(() => reader.seen, { timeout: 15_000 }).toEqual(["r1"]);
  });

  it("ends its read at once when it stops, also on a connection that came while it had no room", async () => {
    const replies: unknown[] = [];
    const { queue, redis } = lab;
    const blocking = connectBlockingReader({ url: lab.url, name: "reader", log: silentLog });
    const commands = queue.redis;
    const client = commands.client.bind(commands) as (...args: unknown[]) => Promise<unknown>;
    commands.client = (async (...args: unknown[]) => {
      const reply = await client(...args);
      replies.push(reply);
      return reply;
    }) as typeof commands.client;
    undo.push(async () => void (commands.client = client as typeof commands.client));
    let room = 8;
    const reader = new Reader({ redis: blocking, commands, consumer: queue.consumer, log: silentLog });
    const accept = ({ deliveries }: Taken) => void (room -= 8 * deliveries.length);
    reader.add({ lanes: lanesByKey([queue.lane]), intake: { room: () => room, accept } });
    const blocked = async () => String(await redis.client("LIST"));
    const isBlocked = / name=reader [^\n]*flags=b/;
    await expect.poll(blocked).toMatch(isBlocked);
    await admitRequest(lab, "r1");
    await expect.poll(() => room).toBe(0);
    const before = blocking.stream;
    before.destroy();
    await expect.poll(() => blocking.stream !== before && blocking.status === "ready").toBe(true);
    room = 8;
    reader.room.notify();
    await expect.poll(blocked).toMatch(isBlocked);
    await reader.stop();
    expect(replies).toContain(1);
  });

  it("lets a long answer take its time on a slow link", async () => {
    const proxy = await Proxy.start(Number(new URL(lab.url).port));
    undo.push(() => proxy.dispose());
    const reader = read(lab, proxy.port);
    undo.push(() => reader.close());
    // Its read has to be under way, blocked in Redis, when the link becomes slow.
    await expect.poll(async () => String(await lab.redis.client("LIST"))).toMatch(/ name=reader .*cmd=xreadgroup/);
    proxy.throttle(500_000);
    await admitRequest(lab, "r1", "", 100, "x".repeat(2_000_000));
    await expect.poll(() => reader.seen, { timeout: 12_000 }).toEqual(["r1"]);
  });

  it("takes few large entries at a time, since Redis serves nobody else meanwhile", async () => {
    const { queue } = lab;
    for (let i = 0; i < 8; i++) await admitRequest(lab, `r${i}`, "", 100, "x".repeat(600_000));
    const redis = connectBlockingReader({ url: lab.url, name: "reader", log: silentLog });
    const reader = new Reader({ redis, commands: queue.redis, consumer: queue.consumer, log: silentLog });
    undo.push(() => reader.stop());
    const sizes: number[] = [];
    const small: string[] = [];
    const accept = ({ deliveries }: Taken) => {
      if (deliveries.length > 0) sizes.push(deliveries.reduce((sum, { frame }) => sum + frame.length, 0));
      small.push(...deliveries.filter(({ frame }) => frame.length < 10).map(({ request }) => request));
    };
    reader.add({ lanes: lanesByKey([queue.lane]), intake: { room: () => 8, accept } });
    await expect.poll(() => sizes.reduce((sum, size) => sum + size, 0)).toBe(8 * 600_000);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1_048_576);
    // What is small comes many at a time again, once some of it has come.
    sizes.length = 0;
    for (let i = 0; i < 60; i++) await admitRequest(lab, `s${i}`, "", 100, "x");
    await expect.poll(() => small.length).toBe(60);
  });
});
