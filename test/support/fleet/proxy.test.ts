import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Proxy } from "./proxy.js";

describe("Proxy", () => {
  let echo: Server;
  let proxy: Proxy;
  const sockets: Socket[] = [];

  beforeEach(async () => {
    echo = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => socket.destroy());
      socket.on("data", (data: Buffer) => socket.write(data));
    });
    echo.listen(0, "127.0.0.1");
    await once(echo, "listening");
    proxy = await Proxy.start((echo.address() as AddressInfo).port);
  });

  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await proxy.dispose();
    echo.close();
  });

  async function dial(): Promise<Socket> {
    const socket = connect(proxy.port, "127.0.0.1");
    socket.on("error", () => socket.destroy());
    sockets.push(socket);
    await once(socket, "connect");
    return socket;
  }

  async function ask(socket: Socket, text: string): Promise<string> {
    const answer = once(socket, "data") as Promise<[Buffer]>;
    socket.write(text);
    return (await answer)[0].toString();
  }

  /** Unlike `once`, does not reject because of the reset that the test awaits. */
  function closing(socket: Socket): Promise<void> {
    return new Promise((resolve) => socket.once("close", () => resolve()));
  }

  it("passes bytes both ways, megabytes included", async () => {
    const socket = await dial();
    const sent = Buffer.alloc(4_000_000, "x");
    let received = 0;
    const whole = new Promise<void>((resolve) => {
      socket.on("data", (data: Buffer) => {
        received += data.length;
        if (received === sent.length) resolve();
      });
    });
    socket.write(sent);
    await whole;
    expect(received).toBe(sent.length);
  });

  it("resetAll cuts every connection and lets new ones through", async () => {
    const [one, two] = [await dial(), await dial()];
    await ask(one, "a");
    await ask(two, "b");
    const closed = Promise.all([closing(one), closing(two)]);
    expect(proxy.resetAll()).toBe(2);
    await closed;
    expect(await ask(await dial(), "again")).toBe("again");
  });

  it("blackHole holds the bytes of its direction until heal, and tells nobody", async () => {
    const socket = await dial();
    await ask(socket, "warm");
    proxy.blackHole("toClient");
    const serverGot = once(sockets.find((s) => s !== socket) ?? socket, "data") as Promise<[Buffer]>;
    let arrived = "";
    socket.on("data", (data: Buffer) => (arrived += data.toString()));
    socket.write("held");
    expect((await serverGot)[0].toString()).toBe("held");
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(arrived).toBe("");
    const healed = once(socket, "data");
    proxy.heal();
    await healed;
    expect(arrived).toBe("held");
  });

  it("delay keeps order and takes at least its time each way", async () => {
    const socket = await dial();
    proxy.delay(40, 20);
    const startedAt = performance.now();
    expect(await ask(socket, "slow")).toBe("slow");
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(79);
  });

  it("throttle spreads the bytes over time", async () => {
    const socket = await dial();
    proxy.throttle(10_000);
    const startedAt = performance.now();
    expect(await ask(socket, "x".repeat(1_000))).toHaveLength(1_000);
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(195);
  });

  it("loseReply swallows exactly the n-th reply, after the server has acted, and cuts that connection alone", async () => {
    const [victim, bystander] = [await dial(), await dial()];
    const lost = proxy.loseReply(2);
    expect(await ask(victim, "first")).toBe("first");
    const closed = closing(victim);
    const got: string[] = [];
    victim.on("data", (data: Buffer) => got.push(data.toString()));
    victim.write("second");
    await closed;
    expect(await lost).toBe(true);
    expect(got).toEqual([]);
    expect(proxy.counts.lostReplies).toBe(1);
    expect(await ask(bystander, "third")).toBe("third");
  });

  it("loseReply says false when it is called off, and then loses nothing", async () => {
    const calling = new AbortController();
    const lost = proxy.loseReply(1, calling.signal);
    calling.abort();
    expect(await lost).toBe(false);
    expect(await ask(await dial(), "kept")).toBe("kept");
  });

  it("loseEvery loses every n-th until it is told to stop", async () => {
    proxy.loseEvery(2);
    for (let i = 0; i < 3; i++) {
      const socket = await dial();
      expect(await ask(socket, "kept")).toBe("kept");
      const closed = closing(socket);
      socket.write("lost");
      await closed;
    }
    proxy.loseEvery(0);
    const socket = await dial();
    for (let i = 0; i < 3; i++) expect(await ask(socket, "kept")).toBe("kept");
    expect(proxy.counts.lostReplies).toBe(3);
  });
});
