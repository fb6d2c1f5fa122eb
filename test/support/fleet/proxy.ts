/**
 * The test's own TCP line in front of Redis or NATS. The line can cut, black-hole, delay or
 * throttle every connection. It can also lose the reply to a command that the server has executed,
 * the fault that makes a retry double an effect.
 */
import { createServer, connect, type Server, type Socket } from "node:net";
import { onFreePort } from "../brokers/port.js";
import { openLine, ProxyPipe, type LineConditions } from "./proxy-pipe.js";

export type Direction = "toServer" | "toClient";

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  readonly pipes: readonly [toServer: ProxyPipe, toClient: ProxyPipe];
  stalled: boolean;
}

/** Connections that hold back the clients' bytes; see `Proxy.stall`. */
export interface StalledLinks {
  /** Whether a client has sent these bytes, in one piece. */
  holds(text: string): boolean;
  /** Closes the clients' ends. The bytes that clients have sent are still on their way. */
  cut(): void;
  /** Lets the held bytes arrive. Resolves when the server has read them and closed. */
  deliver(): Promise<void>;
}

export interface ProxyCounts {
  connections: number;
  resets: number;
  lostReplies: number;
}

export class Proxy {
  readonly counts: ProxyCounts = { connections: 0, resets: 0, lostReplies: 0 };
  readonly port: number;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  readonly #lines: Record<Direction, LineConditions> = { toServer: openLine(), toClient: openLine() };
  /** How many replies pass until the next loss; undefined if no loss is due. */
  #repliesToLoss: number | undefined;
  /** The count to start from after each loss; undefined for a single loss. */
  #lossPeriod: number | undefined;
  #onLoss: (() => void) | undefined;

  private constructor(server: Server, port: number, targetPort: number) {
    this.#server = server;
    this.port = port;
    server.on("connection", (client) => this.#join(client, targetPort));
  }

  /** @param at address and port; if undefined, a free port of 127.0.0.1 */
  static start(targetPort: number, at?: { readonly host: string; readonly port: number }): Promise<Proxy> {
    const listen = (host: string, port: number) =>
      new Promise<Proxy>((resolve, reject) => {
        const server = createServer({ noDelay: true });
        server.once("error", reject);
        server.listen(port, host, () => resolve(new Proxy(server, port, targetPort)));
      });
    return at === undefined ? onFreePort((port) => listen("127.0.0.1", port)) : listen(at.host, at.port);
  }

  /**
   * Sends RST to both ends of every connection.
   * @returns the number of connections
   */
  resetAll(): number {
    const cut = [...this.#links];
    for (const link of cut) reset(link);
    this.counts.resets += cut.length;
    return cut.length;
  }

  /**
   * Stops all bytes in a direction until `heal`, on later connections, too. Neither end notices.
   */
  blackHole(...directions: readonly Direction[]): void {
    for (const direction of directions) this.#lines[direction].blackHoled = true;
  }

  /** Adds latency to each direction, in milliseconds. */
  delay(delayMs: number, jitterMs = 0): void {
    for (const line of Object.values(this.#lines)) Object.assign(line, { delayMs, jitterMs });
  }

  throttle(bytesPerSecond: number): void {
    for (const line of Object.values(this.#lines)) line.bytesPerSecond = bytesPerSecond;
  }

  /**
   * Holds back the bytes of the clients that are connected now. A stalled link does not stop its
   * client from opening another.
   */
  stall(): StalledLinks {
    const links = [...this.#links];
    for (const link of links) {
      link.stalled = true;
      link.pipes[0].stall();
    }
    return {
      holds: (text) => links.some(({ pipes }) => pipes[0].holds(text)),
      cut: () => {
        for (const { client } of links) client.destroy();
      },
      deliver: async () => {
        const closed = links.map(({ server }) => new Promise((resolve) => server.once("close", resolve)));
        for (const { pipes } of links) pipes[0].release();
        await Promise.all(closed);
      },
    };
  }

  /** Ends all conditions. Held bytes arrive now, as after a healed partition. */
  heal(): void {
    for (const line of Object.values(this.#lines)) Object.assign(line, openLine());
    for (const link of this.#links) for (const pipe of link.pipes) pipe.flush();
  }

  /**
   * Drops the n-th chunk that the server sends from now on, over all connections, and resets that
   * connection. Resolves with true after the loss, or with false if `signal` aborts first.
   */
  loseReply(n: number, signal?: AbortSignal): Promise<boolean> {
    this.#repliesToLoss = n;
    return new Promise((resolve) => {
      const settle = (lost: boolean) => {
        signal?.removeEventListener("abort", giveUp);
        this.#onLoss = undefined;
        resolve(lost);
      };
      const giveUp = () => {
        this.#repliesToLoss = undefined;
        settle(false);
      };
      this.#onLoss = () => settle(true);
      if (signal?.aborted === true) giveUp();
      else signal?.addEventListener("abort", giveUp, { once: true });
    });
  }

  /** Loses every n-th reply, until a call with 0. */
  loseEvery(n: number): void {
    this.#lossPeriod = n > 0 ? n : undefined;
    this.#repliesToLoss = this.#lossPeriod;
  }

  async dispose(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.resetAll();
    await closed;
  }

  #join(client: Socket, targetPort: number): void {
    const server = connect({ port: targetPort, host: "127.0.0.1", noDelay: true });
    const link: Link = {
      client,
      server,
      stalled: false,
      pipes: [
        new ProxyPipe(client, server, this.#lines.toServer, () => true),
        new ProxyPipe(server, client, this.#lines.toClient, () => this.#passesReply(link)),
      ],
    };
    this.#links.add(link);
    this.counts.connections += 1;
    // A link that lost one end has no use for the other. A cut looks like an error here.
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      socket.on("error", () => cut(other));
      socket.on("close", () => {
        if (link.stalled && socket === client) return;
        this.#links.delete(link);
        other.end();
      });
    }
  }

  #passesReply(link: Link): boolean {
    if (this.#repliesToLoss === undefined) return true;
    this.#repliesToLoss -= 1;
    if (this.#repliesToLoss > 0) return true;
    this.#repliesToLoss = this.#lossPeriod;
    this.counts.lostReplies += 1;
    reset(link);
    this.#onLoss?.();
    return false;
  }
}

function reset({ client, server }: Link): void {
  cut(client);
  cut(server);
}

/**
 * Node 20.20 never closes a handle after a reset while the handle connects or ends, and its process
 * then spins at exit (tried).
 */
function cut(socket: Socket): void {
  if (socket.connecting || socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
