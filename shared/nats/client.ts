/**
 * The NATS client, with the options of all our connections and without a fault of its own. No other
 * file imports the client.
 */
import { readFileSync } from "node:fs";
import { connect, credsAuthenticator, NatsError, type Authenticator, type NatsConnection } from "nats";
import { NodeTransport } from "nats/lib/src/node_transport.js";
import { natsServers } from "../broker-url.js";

export { AckPolicy, DebugEvents, DeliverPolicy, DiscardPolicy, Events, headers, StorageType } from "nats";
export type { ConsumerInfo, JetStreamManager, Msg, NatsConnection, StoredMsg, StreamConfig, Subscription } from "nats";

export interface Link {
  readonly url: string;
  readonly name: string;
  /** Path of a file with credentials; undefined if the server requires none. */
  readonly creds?: string | undefined;
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

/**
 * Opens a connection, which then reconnects by itself.
 * @param waitOnFirstConnect whether to wait for a server if none answers now, or to reject
 * @throws Error at once if the file with credentials is unreadable
 */
export function openConnection({ url, name, creds }: Link, waitOnFirstConnect: boolean): Promise<NatsConnection> {
  return connect({
    servers: natsServers(url),
    name,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
    reconnectJitter: 50,
    waitOnFirstConnect,
    // The client gives up a silent link after 6 s.
    pingInterval: 2_000,
    maxPingOut: 2,
    timeout: 2_000,
    ...(creds === undefined ? {} : { authenticator: authenticatorOf(creds), ignoreAuthErrorAbort: true }),
  });
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
