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
});
