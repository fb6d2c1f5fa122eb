/**
 * The NATS client, with the options of all our connections and without a fault of its own. No other
 * file imports the client.
 */
import { readFileSync } from "node:fs";
import { connect, credsAuthenticator, NatsError, type Authenticator, type NatsConnection } from "nats";
import { NodeTransport } from "nats/lib/src/node_transport.js";
import type { z } from "zod";
import { isNatsForTls, natsServers } from "../broker-url.js";
import type { sharedSettings } from "../settings.js";
import { clientTls, natsTls, tlsFilesOf, type TlsFiles } from "../tls.js";

export { AckPolicy, DebugEvents, DeliverPolicy, DiscardPolicy, Events, headers, NatsError, StorageType } from "nats";
export type { ConsumerInfo, JetStreamManager, Msg, NatsConnection, StoredMsg, StreamConfig, Subscription } from "nats";

export interface Link {
  readonly url: string;
  readonly name: string;
  /** Path of a file with credentials; undefined if the server requires none. */
  readonly creds?: string | undefined;
  /** The files for TLS; undefined if this side does not insist on TLS. */
  readonly tls?: TlsFiles | undefined;
}

const RECONNECT_JITTER_MS = 50;

/** The settings of a process for its connections to NATS. */
export type NatsSettings = Pick<
  z.infer<typeof sharedSettings>,
  `BATON_NATS_${"URL" | "CREDS" | "CA_FILE" | "CERT_FILE" | "KEY_FILE"}`
>;

export function linkOf(config: NatsSettings): Omit<Link, "name"> {
  const url = config.BATON_NATS_URL;
  const tls = isNatsForTls(url) ? tlsFilesOf(natsTls, config) : undefined;
  return { url, creds: config.BATON_NATS_CREDS, tls };
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

/** A transport's options, which its type hides. */
interface Dialling {
  options: { readonly tls?: object };
}

/**
 * Lets a server's certificate be checked against the host that was dialled. The client gives Node
 * no host beside its own socket, and for an address no name either, and Node then takes
 * `localhost`.
 */
function checkDialledHost(transport: Pick<NodeTransport, "dial">): void {
  const { dial } = transport;
  transport.dial = function (this: NodeTransport, server) {
    const dialling = this as unknown as Dialling;
    const { tls } = dialling.options;
    if (typeof tls === "object") {
      dialling.options = { ...dialling.options, tls: { ...tls, host: server.hostname } };
    }
    return dial.call(this, server);
  };
}

checkDialledHost(NodeTransport.prototype);

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

/** The claims of a user's JWT that Baton reads. */
interface UserClaims {
  readonly nats?: { readonly sub?: { readonly allow?: readonly string[] } };
}

/**
 * The prefix of the inboxes that credentials allow. Credentials of a role of Baton allow only their
 * own, so that no role hears the answers for another.
 * @returns undefined if the credentials allow every inbox
 * @throws Error if the file is unreadable
 */
export function inboxOf(creds: string): string | undefined {
  const [, claims = ""] = /BEGIN NATS USER JWT-+\s+[\w-]+\.([\w-]+)\./.exec(readFileSync(creds, "utf8")) ?? [];
  const { nats }: UserClaims = claims === "" ? {} : (JSON.parse(Buffer.from(claims, "base64url").toString()) as object);
  return nats?.sub?.allow?.flatMap((subject) => /^(_INBOX_\w+)\.>$/.exec(subject)?.[1] ?? [])[0];
}

/**
 * Opens a connection, which then reconnects by itself.
 * @param waitOnFirstConnect whether to wait for a server if none answers now, or to reject
 * @throws Error at once if the file with credentials is unreadable
 */
export async function openConnection(
  { url, name, creds, tls }: Link,
  waitOnFirstConnect: boolean,
): Promise<NatsConnection> {
  const inboxPrefix = creds === undefined ? undefined : inboxOf(creds);
  return connect({
    servers: natsServers(url),
    name,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
    reconnectJitter: RECONNECT_JITTER_MS,
    waitOnFirstConnect,
    // The client gives up a silent link after 6 s.
    pingInterval: 2_000,
    maxPingOut: 2,
    timeout: 2_000,
    ...(inboxPrefix !== undefined && { inboxPrefix }),
    // The client refuses a server without TLS then. Its own options for files read them while its
    // socket has no listener for errors, so a reset would end the process.
    ...(tls !== undefined && { tls: clientTls(tls, natsTls), reconnectJitterTLS: RECONNECT_JITTER_MS }),
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
