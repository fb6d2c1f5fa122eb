/** The only file that imports the NATS client. NATS is the fast path: with it down, publishing is a no-op and readers look into Redis. */
import { connect, DebugEvents, Events, type NatsConnection, type Subscription } from "nats";
import type { Logger } from "pino";
import { natsServers } from "#shared/broker-url.js";
import { delay } from "#shared/retry.js";

export interface Bus {
  /** Drops the message when there is no connection: the outcome is already in Redis. Never throws. */
  publish(subject: string, message: Buffer): void;
  /**
   * Resolves when the server surely has the interest, or is too slow to say so. Messages are handled as they are parsed: there is no queue that could grow.
   * @returns ends the subscription
   */
  subscribe(subject: string, handle: (message: Buffer) => void): Promise<() => void>;
  /** False while messages may be lost; readers then look into Redis at once instead of waiting for silence. */
  isUp(): boolean;
  /** Largest message that the server takes. */
  maxBytes(): number;
  close(): Promise<void>;
}

/** Longest wait for a server that is there to say that it has read all we sent. */
const FLUSH_MS = 500;

/** False when the connection is cut meanwhile; it reconnects by itself, and its status says when. */
async function flushed(connection: NatsConnection): Promise<boolean> {
  try {
    await connection.flush();
    return true;
  } catch {
    return false;
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

async function flushedSoon(connection: NatsConnection): Promise<void> {
  const enough = new AbortController();
  await Promise.race([flushed(connection), delay(FLUSH_MS, enough.signal)]);
  enough.abort();
}

interface Interest {
  readonly subject: string;
  readonly handle: (message: Buffer) => void;
  /** Undefined until the first connection. */
  subscription: Subscription | undefined;
}

export interface BusSettings {
  readonly url: string;
  readonly name: string;
  readonly log: Logger;
}

/** Resolves at once, connected or not: neither gateway nor worker may wait for NATS to start. */
export function connectBus({ url, name, log }: BusSettings): Bus {
  let connection: NatsConnection | undefined;
  let up = false;
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

  async function watch(nc: NatsConnection): Promise<void> {
    for await (const status of nc.status()) {
      if (status.type === Events.Disconnect || status.type === DebugEvents.StaleConnection) {
        if (up) log.warn("nats connection lost");
        up = false;
      } else if (status.type === Events.Reconnect) {
        log.info("nats connection restored");
        up = true;
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
    pingInterval: 5_000,
    maxPingOut: 2,
    timeout: 2_000,
  }).then(
    async (nc) => {
      if (closed) return nc.close();
      connection = nc;
      for (const interest of interests) listen(nc, interest);
      const watching = watch(nc);
      up = await flushed(nc);
      await watching;
    },
    (error: unknown) => {
      log.error({ error: error instanceof Error ? error.message : String(error) }, "nats gave up");
    },
  );
  ready.catch((error: unknown) => log.error({ error: String(error) }, "nats connection ended"));

  return {
    publish(subject, message) {
      if (!up || connection === undefined) return;
      try {
        connection.publish(subject, message);
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
    isUp: () => up,
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
