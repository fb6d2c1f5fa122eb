/**
 * The connections to NATS. NATS is the fast path: during an outage, publishing does nothing and
 * readers read Redis.
 */
import type { Logger } from "pino";
import { delay } from "../retry.js";
import {
  DebugEvents,
  Events,
  headers,
  inboxOf,
  NatsError,
  openConnection,
  type JetStreamManager,
  type Link,
  type NatsConnection,
  type Subscription,
} from "./client.js";

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

export interface BusSettings extends Link {
  /** Whether JetStream keeps the records of streams; false by default. */
  readonly captures?: boolean;
  readonly log: Logger;
}

/** Whether these credentials are for a kind of process, and for no other. False if unreadable. */
function isOfRole(creds: string): boolean {
  try {
    return inboxOf(creds) !== undefined;
  } catch {
    return false;
  }
}

/** The client wraps the errors of its socket. */
function reasonOf(error: unknown): string {
  const { chainedError = error } = error instanceof NatsError ? error : {};
  return chainedError instanceof Error ? chainedError.message : String(chainedError);
}

/** A bus over one connection, which the client opens again by itself. */
class NatsBus implements Bus {
  readonly captures: boolean;
  readonly #log: Logger;
  readonly #interests = new Set<Interest>();
  /** Undefined until the first connection. */
  #connection: NatsConnection | undefined;
  #isUp = false;
  #connections = 0;
  #isClosed = false;

  constructor(settings: BusSettings) {
    this.captures = settings.captures ?? false;
    this.#log = settings.log;
    if (settings.creds === undefined || !isOfRole(settings.creds))
      this.#log.warn("this process may do everything in nats: docs/operations.md has the users of each role");
    const lasting = this.#open(settings).then(
      (nc) => this.#use(nc),
      (error: unknown) => {
        this.#log.error({ error: error instanceof Error ? error.message : String(error) }, "nats gave up");
      },
    );
    lasting.catch((error: unknown) => this.#log.error({ error: String(error) }, "nats connection ended"));
  }

  /** Waits for a server, and logs why it has to. The client says nothing while it waits. */
  async #open(settings: BusSettings): Promise<NatsConnection> {
    try {
      return await openConnection(settings, false);
    } catch (error) {
      this.#log.warn({ error: reasonOf(error) }, "nats cannot be reached yet");
      return openConnection(settings, true);
    }
  }

  publish(subject: string, message: Buffer, id?: string): void {
    if (!this.#isUp || this.#connection === undefined) return;
    try {
      if (id === undefined) this.#connection.publish(subject, message);
      else this.#connection.publish(subject, message, { headers: idHeader(id) });
    } catch (error) {
      this.#log.warn({ error: String(error) }, "nats publish failed");
    }
  }

  async subscribe(subject: string, handle: (message: Buffer) => void): Promise<() => void> {
    const interest: Interest = { subject, handle, subscription: undefined };
    this.#interests.add(interest);
    if (this.#connection !== undefined) {
      this.#listen(this.#connection, interest);
      if (this.#isUp) await flushedSoon(this.#connection);
    }
    return () => {
      this.#interests.delete(interest);
      interest.subscription?.unsubscribe();
    };
  }

  async store(stream: string, subject: string, message: Buffer, id: string): Promise<void> {
    const nc = this.#connected();
    const answer = await nc.request(subject, message, { headers: idHeader(id), timeout: JETSTREAM_MS });
    if (answer.json<{ stream?: unknown }>().stream !== stream)
      throw new Error(`${stream} has not stored a message: ${answer.string()}`);
  }

  async jetStream(): Promise<JetStreamManager> {
    return this.#connected().jetstreamManager({ checkAPI: false, timeout: JETSTREAM_MS });
  }

  isUp(): boolean {
    return this.#isUp;
  }

  connections(): number {
    return this.#connections;
  }

  maxBytes(): number {
    return this.#connection?.info?.max_payload ?? 1_048_576;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#connection === undefined) return;
    if (this.#isUp) await flushedSoon(this.#connection);
    this.#isUp = false;
    await this.#connection.close();
  }

  /** Resolves when the connection is closed for good. */
  async #use(nc: NatsConnection): Promise<void> {
    if (this.#isClosed) return nc.close();
    this.#connection = nc;
    for (const interest of this.#interests) this.#listen(nc, interest);
    const watching = this.#watch(nc);
    this.#connections++;
    this.#isUp = await flushed(nc);
    await watching;
  }

  async #watch(nc: NatsConnection): Promise<void> {
    for await (const status of nc.status()) {
      if (status.type === Events.Disconnect || status.type === DebugEvents.StaleConnection) {
        if (this.#isUp) this.#log.warn("nats connection lost");
        this.#isUp = false;
      } else if (status.type === Events.Reconnect) {
        this.#log.info("nats connection restored");
        this.#connections++;
        // Messages are lost until the server has read the subscriptions.
        this.#isUp = await flushed(nc);
      }
    }
  }

  #listen(nc: NatsConnection, interest: Interest): void {
    interest.subscription = nc.subscribe(interest.subject, {
      callback: (error, message) => {
        if (error === null) interest.handle(viewOf(message.data));
        else this.#log.warn({ error: error.message }, "nats subscription failed");
      },
    });
  }

  #connected(): NatsConnection {
    if (!this.#isUp || this.#connection === undefined) throw new Error("not connected to NATS");
    return this.#connection;
  }
}

/**
 * Returns at once, connected or not, because neither gateway nor worker may wait for NATS to start.
 * @throws Error if the file with credentials is unreadable
 */
export function connectBus(settings: BusSettings): Bus {
  return new NatsBus(settings);
}

/**
 * Opens a separate connection for large data. On the bus's connection, answers would wait behind
 * the data.
 * @throws Error if no server answers now; an open connection reconnects by itself
 */
export function connectForBulk(link: Link): Promise<NatsConnection> {
  return openConnection(link, false);
}
