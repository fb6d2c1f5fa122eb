/**
 * The connection to NATS; no other file imports its client. NATS is the fast path: while it is
 * down, publishing does nothing and readers look into Redis.
 */
import { readFileSync } from "node:fs";
import {
  connect,
  credsAuthenticator,
  DebugEvents,
  Events,
  headers,
  JSONCodec,
  NatsError,
  type Authenticator,
  type JetStreamManager,
  type NatsConnection,
  type Subscription,
} from "nats";
import { NodeTransport } from "nats/lib/src/node_transport.js";
import type { Logger } from "pino";
import { natsServers } from "../broker-url.js";
import { delay } from "../retry.js";

export { headers, StorageType, DiscardPolicy, type Msg, type NatsConnection, type StreamConfig } from "nats";

export interface Bus {
  /**
   * Never throws. Without a connection the message is dropped: what it says is in Redis already.
   * @param id in a header, by which JetStream knows a message again that it has
   */
  publish(subject: string, message: Buffer, id?: string): void;
  /**
   * Publishes what a JetStream stream is to keep.
   * @throws Error where the stream has not said in time that it does
   */
  store(stream: string, subject: string, message: Buffer, id: string): Promise<void>;
  /**
   * What JetStream is managed with.
   * @throws Error without a connection
   */
  jetStream(): Promise<JetStreamManager>;
  /**
   * Resolves when the server surely has the subscription, or is too slow to say so. Messages are
   * handled as they are parsed, so there is no queue that could grow.
   * @returns a function that ends the subscription
   */
  subscribe(subject: string, handle: (message: Buffer) => void): Promise<() => void>;
  /** False while messages are surely lost: readers then look into Redis by themselves. */
  isUp(): boolean;
  /**
   * How many connections there were so far. Where it has grown, messages may have been lost in
   * between.
   */
  connections(): number;
  /** The largest message that the server takes. */
  maxBytes(): number;
  /** Whether JetStream is to keep the records of streams. */
  readonly captures: boolean;
  close(): Promise<void>;
}

export { AckPolicy, DeliverPolicy } from "nats";
export type { ConsumerInfo, JetStreamManager, StoredMsg } from "nats";

/** The header by which JetStream knows a message again, and readers find its index. */
export const ID_HEADER = "Nats-Msg-Id";

/** How long JetStream may take to answer. */
const JETSTREAM_MS = 2_000;

/** The longest wait for a connected server to confirm that it has read what was sent. */
const FLUSH_MS = 500;

/**
 * Waits until the server has read what was sent.
 * @returns false when the connection is cut meanwhile; it reconnects by itself, and its status says
 * when
 */
async function flushed(connection: NatsConnection): Promise<boolean> {
  try {
    await connection.flush();
    return true;
  } catch {
    return false;
  }
}

const answers = JSONCodec();

function idHeader(id: string) {
  const made = headers();
  made.set(ID_HEADER, id);
  return made;
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

async function flushedSoon(connection: NatsConnection): Promise<void> {
  const enough = new AbortController();
  await Promise.race([flushed(connection), delay(FLUSH_MS, enough.signal)]);
  enough.abort();
}

/** A subscription that outlives connections. */
interface Interest {
  readonly subject: string;
  readonly handle: (message: Buffer) => void;
  /** Undefined until the first connection. */
  subscription: Subscription | undefined;
}

export interface BusSettings {
  readonly url: string;
  readonly name: string;
  /** Path of a file with credentials; undefined where the server asks for none. */
  readonly creds?: string | undefined;
  /** Whether JetStream is to keep the records of streams; not, unless it is said. */
  readonly captures?: boolean;
  readonly log: Logger;
}

/**
 * Whether JetStream has said that it has no such thing, as opposed to not answering.
 * @param error what a call of the manager has thrown
 */
export function isNotFound(error: unknown): boolean {
  return error instanceof NatsError && error.api_error?.code === 404;
}

/** Whether JetStream has answered, and said no. */
export function isAnswer(error: unknown): boolean {
  return error instanceof NatsError && error.api_error !== undefined;
}

/** Whether JetStream has said that it will not do that, now or later: a bug of ours. */
export function isRefused(error: unknown): boolean {
  return error instanceof NatsError && error.api_error?.code === 400;
}

/**
 * Authenticates by the file as it is at each connection, so that it can be replaced while the
 * process runs.
 * @throws Error where it cannot be read now
 */
function authenticatorOf(path: string): Authenticator {
  let creds = credsAuthenticator(readFileSync(path));
  return (nonce) => {
    try {
      creds = credsAuthenticator(readFileSync(path));
    } catch {
      // It is being replaced, or is gone: what it held last may still do.
    }
    return creds(nonce);
  };
}

function authentication(creds: string | undefined) {
  return creds === undefined ? {} : { authenticator: authenticatorOf(creds), ignoreAuthErrorAbort: true };
}

/**
 * Has an attempt to connect closed that is given up while nothing came. The client (2.29, its last
 * release) forgets such an attempt, and so its socket opens when the server or the line is back.
 * When that closes once more, the client takes it for its connection, makes a new one beside the
 * good one, and stops to answer pings on that: from then on the server ends a connection of every
 * process each half a minute.
 */
function closeWhatIsGivenUp(transport: Pick<NodeTransport, "dial" | "close">): void {
  const { dial, close } = transport;
  const givenUp = new WeakSet<object>();
  transport.dial = async function (this: NodeTransport, server) {
    const socket = await dial.call(this, server);
    if (givenUp.has(this)) socket.destroy();
    return socket;
  };
  transport.close = function (this: NodeTransport, error) {
    if (!this.connected) {
      givenUp.add(this);
      // Undefined until it is dialled, whatever its type says.
      (this.socket as NodeTransport["socket"] | undefined)?.destroy();
    }
    return close.call(this, error);
  };
}

closeWhatIsGivenUp(NodeTransport.prototype);

/** Returns at once, connected or not: neither gateway nor worker may wait for NATS to start. */
export function connectBus({ url, name, creds, captures = false, log }: BusSettings): Bus {
  let connection: NatsConnection | undefined;
  let up = false;
  let connections = 0;
  let closed = false;
  const interests = new Set<Interest>();

  function listen(nc: NatsConnection, interest: Interest): void {
    interest.subscription = nc.subscribe(interest.subject, {
      callback: (error, message) => {
        if (error === null) interest.handle(viewOf(message.data));
        else log.warn({ error: error.message }, "nats subscription failed");
      },
    });
  }

  function connected(): NatsConnection {
    if (!up || connection === undefined) throw new Error("not connected to NATS");
    return connection;
  }

  async function watch(nc: NatsConnection): Promise<void> {
    for await (const status of nc.status()) {
      if (status.type === Events.Disconnect || status.type === DebugEvents.StaleConnection) {
        if (up) log.warn("nats connection lost");
        up = false;
      } else if (status.type === Events.Reconnect) {
        log.info("nats connection restored");
        connections++;
        // Until the server has read the subscriptions, what is sent to them is lost.
        up = await flushed(nc);
      }
    }
  }

  const ready = connect({
    servers: natsServers(url),
    name,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
    reconnectJitter: 50,
    waitOnFirstConnect: true,
    // A link that stalls without a word is given up after 6 s.
    pingInterval: 2_000,
    maxPingOut: 2,
    timeout: 2_000,
    ...authentication(creds),
  }).then(
    async (nc) => {
      if (closed) return nc.close();
      connection = nc;
      for (const interest of interests) listen(nc, interest);
      const watching = watch(nc);
      connections++;
      up = await flushed(nc);
      await watching;
    },
    (error: unknown) => {
      log.error({ error: error instanceof Error ? error.message : String(error) }, "nats gave up");
    },
  );
  ready.catch((error: unknown) => log.error({ error: String(error) }, "nats connection ended"));

  return {
    publish(subject, message, id) {
      if (!up || connection === undefined) return;
      try {
        if (id === undefined) connection.publish(subject, message);
        else connection.publish(subject, message, { headers: idHeader(id) });
      } catch (error) {
        log.warn({ error: String(error) }, "nats publish failed");
      }
    },
    async subscribe(subject, handle) {
      const interest: Interest = { subject, handle, subscription: undefined };
      interests.add(interest);
      if (connection !== undefined) {
        listen(connection, interest);
        if (up) await flushedSoon(connection);
      }
      return () => {
        interests.delete(interest);
        interest.subscription?.unsubscribe();
      };
    },
    async store(stream, subject, message, id) {
      const nc = connected();
      const answer = await nc.request(subject, message, { headers: idHeader(id), timeout: JETSTREAM_MS });
      const said = answers.decode(answer.data) as { stream?: unknown };
      if (said.stream !== stream) throw new Error(`${stream} has not stored a message: ${answer.string()}`);
    },
    async jetStream() {
      return connected().jetstreamManager({ checkAPI: false, timeout: JETSTREAM_MS });
    },
    captures,
    isUp: () => up,
    connections: () => connections,
    maxBytes: () => connection?.info?.max_payload ?? 1_048_576,
    async close() {
      closed = true;
      if (connection === undefined) return;
      if (up) await flushedSoon(connection);
      up = false;
      await connection.close();
    },
  };
}

/**
 * Opens a connection of its own for what is large: on the one of the bus, answers would wait behind
 * it.
 * @throws Error where no server answers now; once it is open, it reconnects by itself
 */
export function connectForBulk({
  url,
  name,
  creds,
}: Pick<BusSettings, "url" | "name" | "creds">): Promise<NatsConnection> {
  return connect({
    servers: natsServers(url),
    name,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
    reconnectJitter: 50,
    pingInterval: 2_000,
    maxPingOut: 2,
    timeout: 2_000,
    ...authentication(creds),
  });
}
