/**
 * Connections whose plain requests are parsed on the socket, without a gateway behind them: slow
 * and silent clients, clients that read nothing, and stopping.
 */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { setImmediate as nextTurn, setTimeout as wait } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { PlainConnections, type PlainAnswer, type PlainTimes } from "../../../../gateway/http/plain-connections.js";
import { jsonReply } from "../../../../gateway/formats/reply.js";
import { rawPost } from "../../../fixtures/requests.js";

const LONG: PlainTimes = { headMs: 60_000, requestMs: 60_000, keepAliveMs: 60_000 };

/** A server of such connections, which keeps what it would give to node's. */
class Site {
  readonly asked: string[] = [];
  readonly given: string[] = [];
  readonly refused: string[] = [];
  readonly failures: unknown[] = [];
  closing = false;
  /** Whether the route can answer now. */
  hasAnswer = true;
  /** Promises after which the route can say whether it answers, for the next calls. */
  readonly promises: Promise<void>[] = [];
  reply: (body: string) => Promise<PlainAnswer> = (body) => Promise.resolve(said(body));
  readonly plain: PlainConnections;
  readonly #server: Server;
  /** This end of each connection, by the port of the other end. */
  readonly #sockets = new Map<number | undefined, Socket>();

  constructor(times: Partial<PlainTimes>) {
    this.plain = new PlainConnections(
      {
        route: {
          takes: ({ target }) => target === "/taken",
          routeOf: ({ target }) => target,
          find: () => {
            const promise = this.promises.shift();
            if (promise !== undefined) return promise;
            if (!this.hasAnswer) return undefined;
            return (body) => {
              this.asked.push(body.toString());
              return this.reply(body.toString());
            };
          },
        },
        refuse: (socket, reason) => {
          this.refused.push(reason);
          socket.end("refused");
        },
        onFailure: (error) => this.failures.push(error),
        isClosing: () => this.closing,
      },
      { ...LONG, ...times },
      10,
    );
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      this.#sockets.set(socket.remotePort, socket);
      socket.on("error", () => undefined);
      this.plain.add(socket, () => {
        const place = this.given.push("") - 1;
        socket.on("data", (bytes) => (this.given[place] += bytes.toString()));
      });
    });
  }

  async listen(): Promise<this> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return this;
  }

  client(): Client {
    return new Client((this.#server.address() as AddressInfo).port);
  }

  /** Sends bytes, and resolves when they have come, so that the next are another piece. */
  async send({ socket }: Client, bytes: string): Promise<void> {
    socket.write(bytes);
    await until(() => this.#sockets.get(socket.localPort)?.bytesRead, socket.bytesWritten);
  }

  close(): void {
    this.plain.cutAll();
    this.plain.close();
    this.#server.close();
  }
}

class Client {
  readonly socket: Socket;
  isEnded = false;
  readonly #pieces: Buffer[] = [];

  constructor(port: number) {
    this.socket = connect({ port, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
    this.socket.on("data", (bytes: Buffer) => this.#pieces.push(bytes));
    this.socket.on("end", () => (this.isEnded = true)).on("error", () => (this.isEnded = true));
  }

  get text(): string {
    return Buffer.concat(this.#pieces).toString();
  }

  /** The bodies that came back. */
  get bodies(): string[] {
    return this.text.split(/HTTP\/1\.1 200 OK\r\n[^]*?\r\n\r\n/).slice(1);
  }
}

const said = (body: unknown): PlainAnswer => ({ reply: jsonReply(body), requestId: "id" });
const post = (body: string): string => rawPost("/taken", body);
const until = (probe: () => unknown, expected: unknown) => expect.poll(probe, { interval: 5 }).toEqual(expected);

let site: Site;
const open = (times: Partial<PlainTimes> = {}): Promise<Site> => (site = new Site(times)).listen();
afterEach(() => site.close());

describe("a connection", () => {
  it("has an answer for each of its requests, however their bytes come", async () => {
    const client = (await open()).client();
    client.socket.write(post("a"));
    await until(() => client.bodies, ['"a"']);
    const [head = "", body = ""] = post("b".repeat(3_000)).split(/(?<=\r\n\r\n)/);
    for (const piece of [
      head.slice(0, 30),
      head.slice(30),
      body.slice(0, 1),
      body.slice(1, 1_500),
      body.slice(1_500),
    ]) {
      await site.send(client, piece);
    }
    await until(() => client.bodies, ['"a"', JSON.stringify("b".repeat(3_000))]);
    expect(client.text).toMatch(
      /^HTTP\/1\.1 200 OK\r\ncontent-type: application\/json\r\ncontent-length: 3\r\nx-request-id: id\r\nDate: .{29}\r\nConnection: keep-alive\r\nKeep-Alive: timeout=60\r\n\r\n/,
    );
    expect(site.given).toEqual([]);
  });

  it.each([
    ["whole", [post("a")]],
    ["in pieces", post("a".repeat(2_000)).match(/[^]{1,1000}/g) ?? []],
  ])("waits until the route knows whether it answers a request that comes %s", async (_, pieces) => {
    const client = (await open()).client();
    const [body = ""] = pieces.join("").split("\r\n\r\n").slice(1);
    let know = (): void => undefined;
    site.promises.push(new Promise((resolve) => (know = resolve)));
    const [first = "", ...rest] = pieces;
    await site.send(client, first);
    await until(() => site.promises.length, 0);
    for (const piece of rest) client.socket.write(piece);
    expect([site.asked, client.text]).toEqual([[], ""]);
    know();
    await until(() => client.bodies, [JSON.stringify(body)]);
    client.socket.write(post("b"));
    await until(() => client.bodies, [JSON.stringify(body), '"b"']);
    expect([site.asked, site.given]).toEqual([[body, "b"], []]);
  });

  it.each([
    ["does not answer", 1],
    ["still does not know", 2],
  ])("goes to node's server with all bytes if the route %s after the wait", async (_, promises) => {
    const client = (await open()).client();
    site.hasAnswer = false;
    for (let i = 0; i < promises; i++) site.promises.push(Promise.resolve());
    client.socket.write(post("a"));
    await until(() => site.given, [post("a")]);
    client.socket.write(post("b"));
    await until(() => site.given, [post("a") + post("b")]);
    expect(site.asked).toEqual([]);
  });

  it("may end while it waits", async () => {
    const client = (await open()).client();
    let know = (): void => undefined;
    site.promises.push(new Promise((resolve) => (know = resolve)));
    client.socket.write(post("a"));
    await until(() => site.promises.length, 0);
    client.socket.resetAndDestroy();
    await until(() => site.plain.size, 0);
    know();
    await nextTurn();
    expect([site.asked, site.given, site.failures]).toEqual([[], [], []]);
  });

  it("has its whole answer if that is large", async () => {
    const client = (await open()).client();
    const long = "é".repeat(100_000);
    site.reply = () => Promise.resolve(said(long));
    client.socket.write(post("a"));
    await until(() => client.bodies, [JSON.stringify(long)]);
  });

  it.each([
    ["is not plain", "GET /taken HTTP/1.1\r\nHost: h\r\n\r\n"],
    ["the route does not take", rawPost("/other", "a")],
    ["has an incomplete first line", post("a").slice(0, 20)],
    ["has an odd line in an incomplete head", "POST /taken HTTP/1.1\r\nHost: h\r\nExpect: x\r\nA"],
    ["has a head without an end", `POST /taken HTTP/1.1\r\nX: ${"a".repeat(9_000)}\r\n`],
    ["has a large body", post("a".repeat(65_537))],
    ["comes with another", post("a") + post("b")],
  ])("goes to node with a request that %s", async (_, bytes) => {
    const client = (await open()).client();
    client.socket.write(post("first"));
    await until(() => client.bodies, ['"first"']);
    client.socket.write(bytes);
    await until(() => site.given, [bytes]);
    client.socket.write(post("later"));
    await until(() => site.given, [bytes + post("later")]);
    expect(site.asked).toEqual(["first"]);
  });

  it("goes to node with a head in many pieces, or one for which the body need not come", async () => {
    const client = (await open()).client();
    const [head = ""] = post("ab").split(/(?<=\r\n\r\n)/);
    for (const at of [25, 26, 27, 28, 29]) {
      await site.send(client, at === 25 ? head.slice(0, at) : head.slice(at - 1, at));
    }
    await until(() => site.given, [head.slice(0, 29)]);
    const other = site.client();
    other.socket.write(post("a"));
    await until(() => other.bodies, ['"a"']);
    site.hasAnswer = false;
    other.socket.write(post("a").slice(0, -1));
    await until(() => site.given, [head.slice(0, 29), post("a").slice(0, -1)]);
  });

  it("goes to node with a body of which more comes than was said", async () => {
    const client = (await open()).client();
    const bytes = post("ab");
    await site.send(client, bytes.slice(0, -1));
    client.socket.write(`b${post("c")}`);
    await until(() => site.given, [bytes + post("c")]);
  });

  it("goes to node after its answer with what came meanwhile", async () => {
    const client = (await open()).client();
    let finish: (() => void) | undefined;
    site.reply = (body) => new Promise((resolve) => (finish = () => resolve(said(body))));
    client.socket.write(post("a"));
    await until(() => site.asked, ["a"]);
    await site.send(client, post("b"));
    expect(site.given).toEqual([]);
    finish?.();
    await until(() => [client.bodies, site.given], [['"a"'], [post("b")]]);
  });

  it("waits for a client that reads nothing before it takes the next request", async () => {
    const client = (await open()).client();
    site.reply = () => Promise.resolve(said("x".repeat(30_000_000)));
    client.socket.pause();
    client.socket.write(post("a"));
    await until(() => site.asked, ["a"]);
    client.socket.write(post("b"));
    await wait(50);
    expect(site.asked).toEqual(["a"]);
    client.socket.resume();
    await until(() => [site.asked, client.bodies.length], [["a", "b"], 2]);
    expect(site.given).toEqual([]);
  });

  it("is not idle while its client reads its answer", async () => {
    const client = (await open({ keepAliveMs: 50 })).client();
    const long = "x".repeat(30_000_000);
    site.reply = () => Promise.resolve(said(long));
    client.socket.pause();
    client.socket.write(post("a"));
    await until(() => site.asked, ["a"]);
    await wait(300);
    client.socket.resume();
    await until(() => client.bodies.length > 0 && client.isEnded, true);
    expect(client.bodies[0]?.length).toBe(long.length + 2);
  });

  it("ends with a failure, which is reported", async () => {
    const client = (await open()).client();
    site.reply = () => Promise.resolve({ reply: { status: 200, headers: {}, body: [7 as never] }, requestId: "id" });
    client.socket.write(post("a"));
    await until(() => client.isEnded, true);
    expect(site.failures).toEqual([expect.any(RangeError)]);
  });

  it("is forgotten when its client leaves, at any time", async () => {
    await open();
    const clients = ["", post("a").slice(0, -1), post("a")].map((bytes) => {
      const client = site.client();
      client.socket.write(bytes);
      return client;
    });
    let finish: (() => void) | undefined;
    site.reply = (body) => new Promise((resolve) => (finish = () => resolve(said(body))));
    await until(() => [site.asked, site.plain.size], [["a"], 3]);
    for (const { socket } of clients) socket.resetAndDestroy();
    await until(() => site.plain.size, 0);
    finish?.();
    await wait(10);
    expect([site.refused, site.given]).toEqual([[], []]);
  });

  it("ends with the client's half, and with a refusal in the middle of a body", async () => {
    await open();
    const idle = site.client();
    idle.socket.write(post("a"));
    await until(() => idle.bodies, ['"a"']);
    const partial = [site.client(), site.client()];
    for (const [i, bytes] of [post("ab").slice(0, -1), post("ab").slice(0, 30)].entries()) {
      await site.send(partial[i] ?? expect.fail(), bytes);
    }
    for (const { socket } of [idle, ...partial]) socket.end();
    await until(() => [idle, ...partial].every(({ isEnded }) => isEnded), true);
    expect([idle.bodies, ...partial.map(({ text }) => text)]).toEqual([['"a"'], "refused", "refused"]);
    expect(site.refused).toEqual(["HPE_INVALID_EOF_STATE", "HPE_INVALID_EOF_STATE"]);
  });
});

describe("a silent client", () => {
  it("is refused if it sends nothing or half a body, and cut if it has its answer", async () => {
    await open({ headMs: 100, requestMs: 100, keepAliveMs: 100 });
    const [fresh, head, body, answered] = [site.client(), site.client(), site.client(), site.client()];
    head.socket.write(post("ab").slice(0, 30));
    body.socket.write(post("ab").slice(0, -1));
    answered.socket.write(post("a"));
    const late = [fresh, head, body];
    await until(() => late.map(({ text }) => text), ["refused", "refused", "refused"]);
    await until(() => answered.isEnded, true);
    expect(answered.bodies).toEqual(['"a"']);
    expect(site.refused).toEqual(late.map(() => "ERR_HTTP_REQUEST_TIMEOUT"));
    await until(() => site.plain.size, 0);
  });

  it("may wait for its answer as long as that takes", async () => {
    const client = (await open({ headMs: 20, requestMs: 20, keepAliveMs: 20 })).client();
    site.reply = async (body) => {
      await wait(200);
      return said(body);
    };
    client.socket.write(post("a"));
    await until(() => client.bodies, ['"a"']);
    expect(site.refused).toEqual([]);
  });
});

describe("stopping", () => {
  it("ends idle connections at once, and others with their answers", async () => {
    await open();
    const [idle, partial, busy] = [site.client(), site.client(), site.client()];
    idle.socket.write(post("a"));
    await until(() => idle.bodies, ['"a"']);
    let finish: (() => void) | undefined;
    site.reply = (body) => new Promise((resolve) => (finish = () => resolve(said(body))));
    busy.socket.write(post("b"));
    partial.socket.write(post("cd").slice(0, -1));
    await until(() => [site.asked.length, site.plain.size], [2, 3]);
    site.closing = true;
    site.plain.closeIdle();
    await until(() => [idle.isEnded, site.plain.size], [true, 2]);
    finish?.();
    await until(() => [busy.isEnded, busy.bodies], [true, ['"b"']]);
    expect(busy.text).toMatch(/\r\nConnection: close\r\n\r\n"b"$/);
    site.reply = (body) => Promise.resolve(said(body));
    partial.socket.write("d");
    await until(() => [partial.isEnded, partial.bodies], [true, ['"cd"']]);
  });

  it("answers a new connection whose request is on its way, and ends another after a second", async () => {
    await open();
    const [silent, asking] = [site.client(), site.client()];
    await until(() => site.plain.size, 2);
    site.closing = true;
    site.plain.closeIdle();
    asking.socket.write(post("a"));
    await until(() => [asking.isEnded, asking.bodies], [true, ['"a"']]);
    expect(silent.isEnded).toBe(false);
    await until(() => silent.isEnded, true);
    expect([silent.text, site.refused]).toEqual(["", []]);
  });
});
