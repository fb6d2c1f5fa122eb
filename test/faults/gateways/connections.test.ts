/**
 * Connections of a running server: how the server counts them, clients that offer another protocol,
 * and clients that never read.
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { connect as connectTls } from "node:tls";
import { describe, expect, it, vi } from "vitest";
import { WebSocketEndpoint } from "../../../gateway/api/streams/websocket.js";
import { openCertificates } from "#shared/http/certificates.js";
import { RequestService } from "../../../gateway/service/requests.js";
import { makeCertificates } from "../../support/certificates.js";
import { TestGateway, useGateway } from "../../support/gateway/test-gateway.js";
import { rawExchange } from "../../support/gateway/http.js";
import { until } from "../../support/until.js";
import { http2Offer, inferPath, int32Input, rawGet, rawPost, statusesIn } from "../../fixtures/requests.js";

const PATH = inferPath("echo-INT32");
const head = (lines: readonly string[]) => `${lines.join("\r\n")}\r\n\r\n`;
const post = (value: number, more: readonly string[] = []) =>
  rawPost(PATH, JSON.stringify({ inputs: [int32Input(value)] }), more);
const values = (replies: string) => [...replies.matchAll(/"data":\[(\d+)\]/g)].map(([, value]) => Number(value));

const gateway = useGateway({ server: { accepting: 3, webSockets: idleDoor() } });

/** Makes the server listen for upgrades; the tests here open no WebSocket. */
function idleDoor(): WebSocketEndpoint {
  const requests = Object.create(RequestService.prototype) as RequestService;
  return new WebSocketEndpoint({ requests, log: () => undefined });
}

/** The server's ends of the connections whose requests come while `during` runs. */
async function serverSockets(during: () => Promise<unknown>): Promise<Set<Socket>> {
  const sockets = new Set<Socket>();
  const note = (message: unknown) => void sockets.add((message as { socket: Socket }).socket);
  subscribe("http.server.request.start", note);
  try {
    await during();
  } finally {
    unsubscribe("http.server.request.start", note);
  }
  return sockets;
}

function listenersOf(socket: Socket): Record<string, number> {
  return Object.fromEntries(socket.eventNames().map((name) => [String(name), socket.listenerCount(name)]));
}

/** A connection that carries one request after another. */
class Client {
  readonly #socket: Socket;
  #text = "";
  #heard: () => void = () => undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (piece) => {
      this.#text += piece.toString("latin1");
      this.#heard();
    });
    socket.on("close", () => this.#heard());
  }

  static open(port: number): Promise<Client> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => resolve(new Client(socket)));
      socket.on("error", reject);
    });
  }

  /** @returns the statuses of this many answers */
  async ask(bytes: string, answers: number): Promise<number[]> {
    this.#text = "";
    this.#socket.write(bytes);
    while (statusesIn(this.#text).length < answers && !this.#socket.destroyed) {
      await new Promise<void>((resolve) => (this.#heard = resolve));
    }
    return statusesIn(this.#text);
  }

  leave(): void {
    this.#socket.destroy();
  }
}

describe("offers of another protocol on one connection", () => {
  const COUNT = 10_000;

  it(`count it once: after ${COUNT} of them others come in, and they leave nothing behind`, async () => {
    const warnings: string[] = [];
    const warned = (warning: Error) => void warnings.push(warning.message);
    process.on("warning", warned);
    const client = await Client.open(gateway.port);
    const offer = rawGet("/v2/health/live", http2Offer);
    const listeners: Record<string, number>[] = [];
    const offered = await serverSockets(async () => {
      expect(await client.ask(offer, 1)).toEqual([200]);
    });
    for (let asked = 1; asked < COUNT; asked++) {
      expect(await client.ask(offer, 1)).toEqual([200]);
      if (asked % 100 === 0) for (const socket of offered) listeners.push(listenersOf(socket));
    }
    const others = await Promise.all(
      Array.from({ length: 5 }, () => rawExchange(gateway.port, rawGet("/v2/health/live", ["Connection: close"]))),
    );
    expect(others.map(statusesIn)).toEqual(others.map(() => [200]));
    expect(offered.size).toBe(1);
    expect(listeners.at(-1)).toEqual(listeners[0]);
    process.off("warning", warned);
    expect(warnings).toEqual([]);
    client.leave();
  });

  it("that come in one packet with other requests, with bodies and behind slow ones, are answered in order", async () => {
    const slow = { left: 3 };
    gateway.answer = async ({ inputs, outputs }) => {
      if (slow.left-- > 0) await new Promise((resolve) => setTimeout(resolve, 30));
      return { kind: "result", tensors: inputs.map((tensor) => ({ ...tensor, name: outputs[0] ?? "" })), version: "1" };
    };
    const count = 60;
    const packet = Array.from({ length: count }, (_, i) => post(i, i % 3 === 1 ? http2Offer : []));
    packet.push(rawGet("/v2/health/live", [...http2Offer.slice(1), "Connection: close"]));
    const replies = await rawExchange(gateway.port, packet.join(""));
    expect(statusesIn(replies)).toEqual(Array.from({ length: count + 1 }, () => 200));
    expect(values(replies)).toEqual(Array.from({ length: count }, (_, i) => i));
  });

  it("that wait while more is sent than is read ahead are answered, and all behind them, in order", async () => {
    let release: () => void = () => undefined;
    gateway.answer = async ({ inputs, outputs }) => {
      gateway.answer = undefined;
      await new Promise<void>((resolve) => (release = resolve));
      return { kind: "result", tensors: inputs.map((tensor) => ({ ...tensor, name: outputs[0] ?? "" })), version: "1" };
    };
    const count = 2_000;
    const many = Array.from({ length: count }, (_, i) => post(i, i === 1 ? http2Offer : []));
    const offered = await serverSockets(async () => {
      const replies = rawExchange(gateway.port, many.join("") + rawGet("/v2/health/live", ["Connection: close"]));
      await until(() => gateway.answer === undefined);
      // The server has read ahead as much as it will. The kernel's buffer holds the rest.
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve, 5));
      release();
      const text = await replies;
      expect(statusesIn(text)).toEqual(Array.from({ length: count + 1 }, () => 200));
      expect(values(text)).toEqual(Array.from({ length: count }, (_, i) => i));
    });
    expect(offered.size).toBe(1);
  });

  it("that come with a body in many packets are answered, too", async () => {
    const socket = connect(gateway.port, "127.0.0.1");
    let text = "";
    const closed = new Promise((resolve) => socket.on("data", (piece) => (text += String(piece))).on("close", resolve));
    const bytes = post(1, http2Offer) + post(2, http2Offer) + post(3, ["Connection: close"]);
    // Sends pieces of seven bytes, each in a packet of its own.
    socket.setNoDelay(true);
    for (let at = 0; at < bytes.length; at += 7) {
      socket.write(bytes.slice(at, at + 7));
      await new Promise(setImmediate);
    }
    await closed;
    expect(values(text)).toEqual([1, 2, 3]);
  });
});

describe("connections of all handles together", () => {
  it("are limited: one more is closed unheard, until one has left", async () => {
    const most = 12;
    const { server, port } = await TestGateway.start({ server: { accepting: 3, limits: { connections: most } } });
    const clients = await Promise.all(Array.from({ length: most }, () => Client.open(port)));
    const health = rawGet("/v2/health/live");
    for (const client of clients) expect(await client.ask(health, 1)).toEqual([200]);
    expect(await rawExchange(port, health).catch(() => "")).toBe("");
    clients[0]?.leave();
    const another = async () => statusesIn(await rawExchange(port, rawGet("/v2/health/live", ["Connection: close"])));
    await vi.waitFor(async () => expect(await another()).toEqual([200]));
    for (const client of clients) client.leave();
    await server.close(0);
  });
});

describe("a connection of which the client leaves", () => {
  it("ends all of its requests, also those whose replies wait for earlier ones", async () => {
    const count = 20;
    let begun = 0;
    let arrived = 0;
    let closed = 0;
    gateway.answer = () => {
      begun++;
      return new Promise(() => undefined);
    };
    const note = (message: unknown) => {
      arrived++;
      (message as { response: NodeJS.EventEmitter }).response.once("close", () => closed++);
    };
    subscribe("http.server.request.start", note);
    const socket = connect(gateway.port, "127.0.0.1", () =>
      socket.write(Array.from({ length: count }, (_, i) => post(i)).join("")),
    );
    await until(() => arrived === count && begun === 16);
    unsubscribe("http.server.request.start", note);
    socket.destroy();
    await until(() => closed === count);
    expect(begun).toBe(16);
  });

  it.each<[string, (socket: Socket) => unknown]>([
    ["by FIN", (socket) => socket.end()],
    ["at once", (socket) => socket.destroy()],
    ["by FIN behind more requests", (socket) => socket.end(post(3) + post(4))],
  ])("is seen while an offer waits: %s", async (_, leave) => {
    const limits = { connections: 1 };
    const silent = await TestGateway.start({ server: { limits, webSockets: idleDoor() } });
    silent.answer = () => new Promise(() => undefined);
    const { server, port, admitted } = silent;
    const responses: ServerResponse[] = [];
    let closed = false;
    const note = (message: unknown) => {
      const { response } = message as { response: ServerResponse };
      responses.push(response);
      response.once("close", () => (closed = true));
    };
    subscribe("http.server.request.start", note);
    const socket = connect(port, "127.0.0.1", () => socket.write(post(1) + post(2, http2Offer)));
    socket.on("error", () => undefined).resume();
    await until(() => admitted.length === 1);
    expect(closed).toBe(false);
    leave(socket);
    await until(() => closed);
    unsubscribe("http.server.request.start", note);
    expect(responses).toHaveLength(1);
    const another = () => rawExchange(port, rawGet("/v2/health/live", ["Connection: close"])).catch(() => "");
    await vi.waitFor(async () => expect(statusesIn(await another())).toEqual([200]));
    await server.close(0);
  });
});

describe("a client that takes nothing of what waits for it", () => {
  const VALUES = 1 << 20;
  const body = Buffer.alloc(4 * VALUES);
  const large = asking(VALUES);

  /** A request whose answer has this many INT32 values. */
  function asking(count: number): Buffer {
    const body = Buffer.alloc(4 * count);
    const json = JSON.stringify({
      inputs: [{ name: "INPUT0", datatype: "INT32", shape: [count], parameters: { binary_data_size: body.length } }],
      outputs: [{ name: "OUTPUT0", parameters: { binary_data: true } }],
    });
    const lines = [`Inference-Header-Content-Length: ${json.length}`, `Content-Length: ${json.length + body.length}`];
    return Buffer.concat([Buffer.from(head([`POST ${PATH} HTTP/1.1`, "Host: h", ...lines]) + json), body]);
  }

  /**
   * Sends the bytes and reads nothing.
   * @returns the connection, and a promise of its close
   */
  async function ask(port: number, bytes: Buffer, ca?: Buffer): Promise<{ socket: Socket; closed: Promise<void> }> {
    const socket = ca === undefined ? connect(port, "127.0.0.1") : connectTls({ host: "127.0.0.1", port, ca });
    socket.on("error", () => undefined);
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    await new Promise<void>((resolve) => socket.once(ca === undefined ? "connect" : "secureConnect", resolve));
    socket.pause();
    await new Promise<void>((resolve) =>
      Readable.from([bytes]).on("data", (piece) => socket.write(piece, () => resolve())),
    );
    return { socket, closed };
  }

  /** A certificate for a gateway, and the authority that clients trust. */
  async function certified() {
    const folder = mkdtempSync(join(tmpdir(), "baton-tls-"));
    const { ca, server } = await makeCertificates(folder);
    const settings = { BATON_TLS_CERT_FILE: server.cert, BATON_TLS_KEY_FILE: server.key };
    const made = { certificates: openCertificates(settings, () => undefined), ca: readFileSync(ca) };
    rmSync(folder, { recursive: true });
    return made;
  }

  it.each([["plain"], ["TLS"]])("is cut, one that takes it slowly is not (%s)", async (manner) => {
    const limits = { stallMs: 3_000 };
    const { certificates, ca } = manner === "TLS" ? await certified() : {};
    const strict = await TestGateway.start({ server: { limits, certificates } });
    const cut = () => strict.logged.filter(({ line }) => line.startsWith("connection cut"));
    const sockets = await serverSockets(async () => {
      const silent = await Promise.all(Array.from({ length: 8 }, () => ask(strict.port, large, ca)));
      const slow = await ask(strict.port, Buffer.concat([large, large]), ca);
      let read = 0;
      // The kernel takes 4 MiB at once, and then nothing until the client has read most of that. At
      // 2.5 MB a second, also on a busy machine, that lasts for half of the limit.
      const since = performance.now();
      const reading = setInterval(() => {
        for (let piece: Buffer | null = null; read < (performance.now() - since) * 2_500; read += piece.length) {
          piece = slow.socket.read(32_768) as Buffer | null;
          if (piece === null) break;
        }
      }, 12);
      slow.socket.on("readable", () => undefined);
      // On a busy machine, answers to the silent clients may begin long after the answer to the
      // slow client.
      await until(() => read >= 2 * body.length && cut().length >= silent.length);
      clearInterval(reading);
      slow.socket.destroy();
      for (const { socket } of silent) socket.destroy();
    });
    expect(cut()).toHaveLength(8);
    for (const { fields } of cut()) expect(fields["unreadBytes"]).toBeGreaterThan(0);
    expect(sockets.size).toBe(9);
    await strict.server.close(0);
    certificates?.close();
  });

  it("is cut sooner where too much waits for all, and those who read are not", async () => {
    const limits = { unreadBytes: 18 * body.length };
    const full = await TestGateway.start({ server: { limits } });
    const cut = () => full.logged.filter(({ line }) => line.startsWith("connection cut"));
    const steady = await ask(full.port, asking(8 * VALUES));
    let read = 0;
    const take = (most?: number) => (read += (steady.socket.read(most) as Buffer | null)?.length ?? 0);
    steady.socket.on("readable", () => undefined);
    // The kernel asks for more only every other second.
    const reading = setInterval(take, 40, 32_768);
    await until(() => read > body.length / 4);
    const silent = await Promise.all(Array.from({ length: 8 }, () => ask(full.port, asking(4 * VALUES))));
    await until(() => cut().length > 0);
    expect(statusesIn(await rawExchange(full.port, rawGet("/v2/health/live", ["Connection: close"])))).toEqual([200]);
    expect(cut().length).toBeLessThan(8);
    for (const { fields } of cut()) expect(fields["unreadBytes"]).toBeLessThan(5 * body.length);
    clearInterval(reading);
    steady.socket.on("readable", () => take());
    take();
    await until(() => steady.socket.destroyed || read > 8 * body.length);
    expect(read).toBeGreaterThan(8 * body.length);
    for (const { socket } of [...silent, steady]) socket.destroy();
    await full.server.close(0);
  });

  describe("since an earlier reply is not complete", () => {
    const first = { release: (): void => undefined };
    /** Starts a gateway whose first answer waits for `release`. */
    async function startHeld(limits: { stallMs: number; unreadBytes: number }): Promise<TestGateway> {
      const held = await TestGateway.start({ server: { limits } });
      held.answer = async ({ inputs, outputs }) => {
        held.answer = undefined;
        await new Promise<void>((resolve) => (first.release = resolve));
        return {
          kind: "result",
          tensors: inputs.map((tensor) => ({ ...tensor, name: outputs[0] ?? "" })),
          version: "1",
        };
      };
      return held;
    }
    const pipelined = Buffer.concat([Buffer.from(post(7)), large]);

    it("is counted, and cut where too much waits for all", async () => {
      const held = await startHeld({ stallMs: 6_000, unreadBytes: body.length / 2 });
      const { closed } = await ask(held.port, pipelined);
      await closed;
      const [cut] = held.logged.filter(({ line }) => line.startsWith("connection cut"));
      expect(cut?.fields["unreadBytes"]).toBeGreaterThan(body.length);
      await held.server.close(0);
    });

    it("is not cut for standing long", async () => {
      const held = await startHeld({ stallMs: 1_000, unreadBytes: 1e9 });
      const { socket } = await ask(held.port, pipelined);
      await until(() => held.admitted.length === 2);
      // A connection that made no progress for a shorter time is cut.
      const silent = await ask(held.port, large);
      await until(() => held.logged.some(({ line }) => line.startsWith("connection cut")));
      silent.socket.destroy();
      let read = 0;
      socket.on("data", (piece) => (read += piece.length)).resume();
      first.release();
      await until(() => socket.destroyed || read > body.length);
      expect(read).toBeGreaterThan(body.length);
      socket.destroy();
      await held.server.close(0);
    });
  });
});
