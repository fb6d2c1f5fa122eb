/**
 * The sender checks the address at each connection of an attempt, for an address in the URL and for
 * every answer to a name.
 */
import type { lookup } from "node:dns";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Sender } from "../../gateway/doors/jobs/sender.js";
import { parseRanges } from "../../gateway/webhooks/addresses.js";

/** A name that resolves to the next of these addresses at each look-up. */
function changing(addresses: string[]): typeof lookup {
  const resolve = (_name: string, options: { all?: boolean }, done: (...answer: unknown[]) => void) => {
    const address = addresses.shift() ?? "";
    const family = address.includes(":") ? 6 : 4;
    if (options.all === true) done(null, [{ address, family }]);
    else done(null, address, family);
  };
  return resolve as unknown as typeof lookup;
}

describe("Sender", () => {
  let server: Server;
  let port = 0;
  let connections = 0;
  beforeAll(async () => {
    server = createServer((socket) => {
      connections++;
      socket.on("error", () => undefined);
      socket.once("data", () => socket.end("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => new Promise<void>((resolve) => server.close(() => resolve())));

  async function send(url: string, { allowed = "", addresses = [] as string[], times = 1 } = {}) {
    const resolve = addresses.length === 0 ? {} : { resolve: changing(addresses) };
    const sender = new Sender({ allowed: parseRanges(allowed) ?? [], timeoutMs: 2_000, ...resolve });
    const before = connections;
    const said: (number | string | null)[] = [];
    for (let i = 0; i < times; i++) {
      const { status, error } = await sender.send(url, {}, "{}");
      said.push(status ?? error);
    }
    await sender.close();
    return { said, connected: connections - before };
  }

  it.each([
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f.1",
    "①②⑦.0.0.1",
    "[::1]",
    "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[::7f00:1]",
    "localhost",
    "localhost.",
    "169.254.169.254",
  ])("connects to nothing inside: %s (A61)", async (host) => {
    for (const scheme of ["http", "https"]) {
      expect(await send(`${scheme}://${host}:${port}/`)).toEqual({ said: ["url_not_allowed"], connected: 0 });
    }
  });

  it("connects to what the operator allows", async () => {
    const url = `http://127.0.0.1:${port}/`;
    expect(await send(url, { allowed: "127.0.0.0/8" })).toEqual({ said: [204], connected: 1 });
    expect(await send(url, { allowed: "10.0.0.0/8" })).toEqual({ said: ["url_not_allowed"], connected: 0 });
  });

  it("judges a name by each of its answers (A62)", async () => {
    const url = `http://hooks.example:${port}/`;
    const addresses = ["127.0.0.1", "127.0.0.2", "::ffff:127.0.0.2"];
    const { said, connected } = await send(url, { allowed: "127.0.0.1/32", addresses, times: 3 });
    expect(said).toEqual([204, "url_not_allowed", "url_not_allowed"]);
    expect(connected).toBe(1);
    const inside = await send(`https://hooks.example:${port}/`, { addresses: ["127.0.0.1"] });
    expect(inside).toEqual({ said: ["url_not_allowed"], connected: 0 });
  });

  it("sends nothing to a port of another protocol, and nothing without encryption to the Internet", async () => {
    for (const refused of [22, 6379, 4222]) {
      expect((await send(`http://127.0.0.1:${refused}/`, { allowed: "127.0.0.0/8" })).said).toEqual([
        "url_not_allowed",
      ]);
    }
    const open = await send(`http://hooks.example:${port}/`, { allowed: "10.0.0.0/8", addresses: ["192.0.2.1"] });
    expect(open.said).toEqual(["url_not_allowed"]);
  });

  it("keeps a connection open no longer than it likes, whatever the receiver asks for", async () => {
    const open = new Set<Socket>();
    const lasting = createServer((socket) => {
      open.add(socket);
      socket.on("error", () => undefined).on("close", () => open.delete(socket));
      socket.on("data", () => socket.write("HTTP/1.1 204 No Content\r\nkeep-alive: timeout=600\r\n\r\n"));
    });
    await new Promise<void>((resolve) => lasting.listen(0, "127.0.0.1", resolve));
    const sender = new Sender({ allowed: parseRanges("127.0.0.0/8") ?? [], timeoutMs: 2_000 });
    const { port: kept } = lasting.address() as AddressInfo;
    expect(await sender.send(`http://127.0.0.1:${kept}/`, {}, "{}")).toMatchObject({ status: 204 });
    expect(open.size).toBe(1);
    await expect.poll(() => open.size).toBe(0);
    await sender.close();
    await new Promise<void>((resolve) => lasting.close(() => resolve()));
  }, 40_000);

  it("says in a word what the network did", async () => {
    const gone = createServer();
    await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
    const { port: closed } = gone.address() as AddressInfo;
    await new Promise<void>((resolve) => gone.close(() => resolve()));
    expect((await send(`http://127.0.0.1:${closed}/`, { allowed: "127.0.0.0/8" })).said).toEqual([
      "connection_refused",
    ]);
    expect((await send(`https://127.0.0.1:${port}/`, { allowed: "127.0.0.0/8" })).said).toEqual(["tls"]);
  });
});
