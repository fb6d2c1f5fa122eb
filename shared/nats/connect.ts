/**
 * The connection to NATS; no other file imports the NATS client. NATS is the fast path: during an
 * outage, publishing does nothing and readers read Redis.
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
   * Never throws. Without a connection the message is dropped, because Redis has its content.
   * @param id in a header, by which JetStream recognises a duplicate
   */
  publish(subject: string, message: Buffer, id?: string): void;
  /**
   * Publishes a message, and waits until a JetStream stream has stored the message.
   * @throws Error if the stream does not confirm the message in time
   */
  store(stream: string, subject: string, message: Buffer, id: string): Promise<void>;
  /**
   * The API for managing JetStream.
   * @throws Error without a connection
   */
  jetStream(): Promise<JetStreamManager>;
  /**
   * Resolves after the server has confirmed the subscription, or after a short wait. The client
   * calls `handle` as it parses a message, so no queue can grow.
   * @returns a function that ends the subscription
   */
  subscribe(subject: string, handle: (message: Buffer) => void): Promise<() => void>;
  /** False while messages are surely lost: readers then read Redis by themselves. */
  isUp(): boolean;
  /**
   * The number of connections so far. If the number has grown, messages may have been lost in
   * between.
   */
  connections(): number;
  /** The largest message that the server takes. */
  maxBytes(): number;
  /** Whether JetStream keeps the records of streams. */
  readonly captures: boolean;
  close(): Promise<void>;
}

export { AckPolicy, DeliverPolicy } from "nats";
export type { ConsumerInfo, JetStreamManager, StoredMsg } from "nats";

/** The header by which JetStream recognises a duplicate, and from which readers take the index. */
export const ID_HEADER = "Nats-Msg-Id";

/** How long to wait for an answer of JetStream. */
const JETSTREAM_MS = 2_000;

/** The longest wait until a connected server confirms that it has read all messages. */
const FLUSH_MS = 500;

/**
 * Waits until the server has read all messages.
 * @returns false if the connection breaks meanwhile; the client reconnects by itself, and reports a
 *   status when it has
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
  /** Path of a file with credentials; undefined if the server requires none. */
  readonly creds?: string | undefined;
  /** Whether JetStream keeps the records of streams; false by default. */
  readonly captures?: boolean;
  readonly log: Logger;
}

/**
 * Whether JetStream has answered that the object does not exist; false if JetStream has not
 * answered.
 * @param error from a call of the manager
 */
export function isNotFound(error: unknown): boolean {
  return error instanceof NatsError && error.api_error?.code === 404;
}

/** Whether JetStream has answered with an error. */
export function isAnswer(error: unknown): boolean {
  return error instanceof NatsError && error.api_error !== undefined;
}

/** Whether JetStream refuses the request for good: a bug in Baton. */
export function isRefused(error: unknown): boolean {
  return error instanceof NatsError && error.api_error?.code === 400;
}

/**
 * Reads the credentials file at each connect, so that an operator can replace the file while the
 * process runs.
 * @throws Error if the file is unreadable now
 */
function authenticatorOf(path: string): Authenticator {
  let creds = credsAuthenticator(readFileSync(path));
  return (nonce) => {
    try {
      creds = credsAuthenticator(readFileSync(path));
    } catch {
      // The file is being replaced, or is gone. The previous credentials may still be valid.
    }
    return creds(nonce);
  };
}

function authentication(creds: string | undefined) {
  return creds === undefined ? {} : { authenticator: authenticatorOf(creds), ignoreAuthErrorAbort: true };
}

/**
 * Closes the socket of an abandoned attempt to connect. The client (2.29, the last release) forgets
 * such an attempt, so the socket opens when the server or the link is back. When that socket closes
 * again, the client takes it for its live connection. The client then opens another connection
 * beside the good connection, and no longer answers pings on the good connection. From then on the
 * server ends a connection of every process each half minute.
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
      // Undefined before dialling, despite the type.
      (this.socket as NodeTransport["socket"] | undefined)?.destroy();
    }
    return close.call(this, error);
  };
}

closeWhatIsGivenUp(NodeTransport.prototype);

/**
 * Returns at once, connected or not, because neither gateway nor worker may wait for NATS to start.
 */
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
        // Messages are lost until the server has read the subscriptions.
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
    // The client gives up a silent link after 6 s.
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
 * Opens a separate connection for large data. On the bus's connection, answers would wait behind
 * the data.
 * @throws Error if no server answers now; an open connection reconnects by itself
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
