import { connect, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { connectBlockingReader, whenReady } from "#shared/redis/connect.js";
import { Reader } from "../../worker/lane/reader.js";
import { Proxy } from "../support/fleet/proxy.js";
import { lanesByKey, waitForNew, type Taken } from "#shared/queue/work/stream.js";
import { createGroup } from "#shared/queue/work/read/create-group.js";
import { admit, LIMITS, useLab, type Lab, applicant } from "../support/queue/lab.js";
import { silentLog } from "../support/silent.js";

function read({ queue }: Lab, port: number) {
  const link = { url: `redis://127.0.0.1:${port}`, name: "reader", log: silentLog };
  const redis = connectBlockingReader(link);
  const seen: string[] = [];
  const accept = ({ deliveries }: Taken) => seen.push(...deliveries.map(({ request }) => request));
  const reader = new Reader({ redis, commands: queue.redis, consumer: queue.consumer, log: silentLog });
  reader.add({ lanes: lanesByKey([queue.lane]), laneCount: 1, intake: { room: () => 8, accept } });
  return { seen, doubt: () => reader.doubt(), close: () => reader.stop() };
}

describe("the reader", () => {
  const lab = useLab();
  /** A lane of a second model of the worker. */
  const idleLane = async () => {
    const lane = { ...lab.lane, model: `${lab.lane.model}-idle` };
    await createGroup(lab.redis, lane);
    return lane;
  };
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
    await lab.admitRequest("r1");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const reader = read(lab, address.port);
    undo.push(() => reader.close());
    await expect.poll(() => reader.seen).toEqual(["r1"]);
  });

  /** The id of a connection on which Redis holds a read blocked. */
  const blockedId = async (name: string) => {
    const clients = String(await lab.redis.client("LIST")).split("\n");
    return clients.find((one) => one.includes(` name=${name} `) && one.includes(" flags=b"))?.match(/^id=(\d+)/)?.[1];
  };
  /** Takes the next entry under the worker's name, before the worker's own reader can. */
  const takeUnseen = async () => {
    const lost = connectBlockingReader({ url: lab.url, name: "lost", log: silentLog });
    undo.push(async () => lost.disconnect());
    await whenReady(lost, AbortSignal.timeout(10_000));
    const taken = waitForNew(lost, lab.queue.consumer, lanesByKey([lab.queue.lane]), 1, 20_000);
    await expect.poll(() => blockedId("lost")).toBeDefined();
    return taken;
  };

  it("finds what Redis gives to a read of a connection that is lost, also after it has asked what it owns", async () => {
    const proxy = await Proxy.start(Number(new URL(lab.url).port));
    undo.push(() => proxy.dispose());
    const reader = read(lab, proxy.port);
    undo.push(() => reader.close());
    await expect.poll(() => blockedId("reader")).toBeDefined();
    const before = await blockedId("reader");
    // Stands for the read of a lost connection that Redis still believes open.
    const taking = takeUnseen();
    await expect.poll(() => blockedId("lost")).toBeDefined();
    proxy.resetAll();
    await expect.poll(async () => ((await blockedId("reader")) ?? before) !== before).toBe(true);
    await lab.admitRequest("r1");
    expect((await taking).deliveries).toHaveLength(1);
    await expect.poll(() => reader.seen).toEqual(["r1"]);
  });

  it("finds what a call has brought whose reply was lost", async () => {
    const taking = takeUnseen();
    await expect.poll(() => blockedId("lost")).toBeDefined();
    const reader = read(lab, Number(new URL(lab.url).port));
    undo.push(() => reader.close());
    await expect.poll(() => blockedId("reader")).toBeDefined();
    await lab.admitRequest("r1");
    expect((await taking).deliveries).toHaveLength(1);
    reader.doubt();
    await expect.poll(() => reader.seen).toEqual(["r1"]);
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
    reader.add({ lanes: lanesByKey([queue.lane]), laneCount: 1, intake: { room: () => room, accept } });
    const blocked = async () => String(await redis.client("LIST"));
    const isBlocked = / name=reader [^\n]*flags=b/;
    await expect.poll(blocked).toMatch(isBlocked);
    await lab.admitRequest("r1");
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

  it("ends a read for other models until it has ended, though the command comes before the read", async () => {
    const { queue } = lab;
    const proxy = await Proxy.start(Number(new URL(lab.url).port));
    undo.push(() => proxy.dispose());
    const blocking = connectBlockingReader({ url: `redis://127.0.0.1:${proxy.port}`, name: "reader", log: silentLog });
    const replies: unknown[] = [];
    const commands = queue.redis;
    const client = commands.client.bind(commands) as (...args: unknown[]) => Promise<unknown>;
    commands.client = (async (...args: unknown[]) => {
      const reply = await client(...args);
      replies.push(reply);
      return reply;
    }) as typeof commands.client;
    undo.push(async () => void (commands.client = client as typeof commands.client));
    const reader = new Reader({ redis: blocking, commands, consumer: queue.consumer, log: silentLog });
    undo.push(() => reader.stop());
    const idle = await idleLane();
    let room = 1;
    const seen: string[] = [];
    // As with a model that runs single requests: there is room again when the last request begins.
    const accept = ({ deliveries }: Taken) => {
      if (deliveries.length === 0) return;
      seen.push(...deliveries.map(({ request }) => request));
      room = 0;
      setImmediate(() => {
        room = 1;
        reader.room.notify();
      });
    };
    reader.add({ lanes: lanesByKey([queue.lane]), laneCount: 1, intake: { room: () => room, accept } });
    reader.add({ lanes: lanesByKey([idle]), laneCount: 1, intake: { room: () => 1, accept: () => undefined } });
    const blocked = async () => String(await lab.redis.client("LIST"));
    await expect.poll(blocked).toMatch(/ name=reader [^\n]*flags=b/);
    proxy.delay(30);
    for (const request of ["r1", "r2", "r3", "r4"]) await lab.admitRequest(request);
    await expect.poll(() => seen).toEqual(["r1", "r2", "r3", "r4"]);
    // Earlier commands ended no read; the last one did.
    expect(replies).toContain(0);
    expect(replies).toContain(1);
  });

  it("asks what is parked of a model for which it finds nothing, however much it finds of others", async () => {
    const { queue } = lab;
    const idle = await idleLane();
    const waiting = ["b1", "b2"].map((request) => ({ ...applicant(idle, request, request), window: 1 }));
    await admit(lab.redis, { gateway: "gw", limits: LIMITS }, waiting);
    // Another worker holds all ready entries for long.
    await lab.take({ ...lab.other, lane: idle });
    const blocking = connectBlockingReader({ url: lab.url, name: "reader", log: silentLog });
    const reader = new Reader({ redis: blocking, commands: queue.redis, consumer: queue.consumer, log: silentLog });
    undo.push(() => reader.stop());
    const ofIdle: string[] = [];
    let found = 0;
    // The next request is admitted as soon as the last was read, so each read finds an entry.
    const next = () => void lab.admitRequest(`a${found}`, "", 1_000);
    const accept = ({ deliveries }: Taken) => {
      found += deliveries.length;
      if (deliveries.length > 0) next();
    };
    next();
    reader.add({ lanes: lanesByKey([queue.lane]), laneCount: 1, intake: { room: () => 8, accept } });
    const keep = ({ deliveries }: Taken) => void ofIdle.push(...deliveries.map(({ request }) => request));
    reader.add({ lanes: lanesByKey([idle]), laneCount: 1, intake: { room: () => 1, accept: keep } });
    await expect.poll(() => found).toBeGreaterThan(100);
    expect(ofIdle).toEqual(["b2"]);
  });

  it("lets a long answer take its time on a slow link", async () => {
    const proxy = await Proxy.start(Number(new URL(lab.url).port));
    undo.push(() => proxy.dispose());
    const reader = read(lab, proxy.port);
    undo.push(() => reader.close());
    // The read has to block in Redis before the link becomes slow.
    await expect.poll(async () => String(await lab.redis.client("LIST"))).toMatch(/ name=reader .*cmd=xreadgroup/);
    proxy.throttle(500_000);
    await lab.admitRequest("r1", "", 100, "x".repeat(2_000_000));
    await expect.poll(() => reader.seen, { timeout: 12_000 }).toEqual(["r1"]);
  });

  it("brings all that a call has queued in one trip, as far as there is room", async () => {
    const { queue } = lab;
    const redis = connectBlockingReader({ url: lab.url, name: "reader", log: silentLog });
    const reader = new Reader({ redis, commands: queue.redis, consumer: queue.consumer, log: silentLog });
    undo.push(() => reader.stop());
    const trips: string[][] = [];
    const accept = ({ deliveries }: Taken) => {
      if (deliveries.length > 0) trips.push(deliveries.map(({ request }) => request));
    };
    const room = () => 5 - trips.flat().length;
    reader.add({ lanes: lanesByKey([queue.lane]), laneCount: 1, intake: { room, accept } });
    await expect.poll(() => blockedId("reader")).toBeDefined();
    const call = (requests: readonly string[]) => requests.map((request) => applicant(queue.lane, request, request));
    await admit(lab.redis, { gateway: "gw", limits: LIMITS }, call(["a1", "a2", "a3"]));
    await expect.poll(() => trips).toEqual([["a1", "a2", "a3"]]);
    await expect.poll(() => blockedId("reader")).toBeDefined();
    await admit(lab.redis, { gateway: "gw", limits: LIMITS }, call(["b1", "b2", "b3"]));
    await expect
      .poll(() => trips)
      .toEqual([
        ["a1", "a2", "a3"],
        ["b1", "b2"],
      ]);
  });

  it("takes few large entries at a time, since Redis serves nobody else meanwhile", async () => {
    const { queue } = lab;
    for (let i = 0; i < 8; i++) await lab.admitRequest(`r${i}`, "", 100, "x".repeat(600_000));
    const redis = connectBlockingReader({ url: lab.url, name: "reader", log: silentLog });
    const reader = new Reader({ redis, commands: queue.redis, consumer: queue.consumer, log: silentLog });
    undo.push(() => reader.stop());
    const sizes: number[] = [];
    const small: string[] = [];
    const accept = ({ deliveries }: Taken) => {
      if (deliveries.length > 0) sizes.push(deliveries.reduce((sum, { frame }) => sum + frame.length, 0));
      small.push(...deliveries.filter(({ frame }) => frame.length < 10).map(({ request }) => request));
    };
    reader.add({ lanes: lanesByKey([queue.lane]), laneCount: 1, intake: { room: () => 8, accept } });
    await expect.poll(() => sizes.reduce((sum, size) => sum + size, 0)).toBe(8 * 600_000);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1_048_576);
    // Small entries come many at a time again, after the first of them.
    sizes.length = 0;
    for (let i = 0; i < 60; i++) await lab.admitRequest(`s${i}`, "", 100, "x");
    await expect.poll(() => small.length).toBe(60);
  });
});
