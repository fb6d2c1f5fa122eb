/**
 * A real nats-server with JetStream. A killed server keeps all messages that JetStream has
 * acknowledged, and loses all other messages for good, as in production.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect, credsAuthenticator, type NatsConnection } from "nats";
import { makeNatsAccounts, type NatsUser } from "../../../gateway/subscriptions/nats-accounts.js";
import { inboxOf } from "#shared/nats/client.js";
import type { NatsRole } from "../../../gateway/subscriptions/nats-roles.js";
import { clientSettings, type TestCertificates } from "../certificates.js";
import { startBroker, type Broker } from "./broker.js";
import { freePort } from "./port.js";

export interface NatsServer extends Broker {
  readonly url: string;
  /** Undefined if the server lets in every client. */
  readonly guard?: Guard;
  /**
   * How many bytes the server holds back for each of its clients.
   * @throws Error while the server is down
   */
  pendingBytes(): Promise<readonly number[]>;
}

/** How a client connects to a server that requires credentials. */
export interface Guard {
  /** The server takes WebSockets, too. */
  readonly webSocketUrl: string;
  /** The file of each user's credentials. */
  readonly creds: Readonly<Record<NatsUser, string>>;
  /** Settings with which each kind of process connects. */
  readonly env: Readonly<Record<NatsRole, Readonly<Record<string, string>>>>;
}

/**
 * Starts a server with the accounts of a deployment.
 * @param folder for log, data and keys
 * @param certificates of the server and its clients, if all are to use TLS
 */
export async function startGuardedNats(
  folder: string,
  certificates?: TestCertificates,
): Promise<NatsServer & { readonly guard: Guard }> {
  const places = { server: folder, creds: join(folder, "*.creds"), gateways: folder };
  const { creds, seed } = await makeNatsAccounts(places);
  const config = join(folder, "nats.conf");
  const port = await freePort();
  writeFileSync(
    config,
    `include "accounts.conf"\nwebsocket { host: "127.0.0.1", port: ${port}, no_tls: true }\n${tlsBlock(certificates)}`,
  );
  const started = await start(folder, ["--config", config]);
  const nats =
    certificates === undefined ? started : Object.assign(started, { url: `tls://127.0.0.1:${started.port}` });
  const tls = certificates === undefined ? {} : clientSettings("NATS", certificates);
  const webSocketUrl = `ws://127.0.0.1:${port}`;
  const signing = { BATON_NATS_SIGNING_SEED: seed, BATON_NATS_PUBLIC_URLS: `${nats.url},${webSocketUrl}` };
  const env = {
    gateway: { BATON_NATS_CREDS: creds.gateway, ...signing, ...tls },
    worker: { BATON_NATS_CREDS: creds.worker, ...tls },
    jobs: { BATON_NATS_CREDS: creds.jobs, ...tls },
  };
  return Object.assign(nats, { guard: { webSocketUrl, creds, env } });
}

function tlsBlock(certificates: TestCertificates | undefined): string {
  if (certificates === undefined) return "";
  const { ca, server } = certificates;
  return `tls { cert_file: "${server.cert}", key_file: "${server.key}", ca_file: "${ca}", verify: true }\n`;
}

/** Connects a test as one of the server's users. */
export function connectAs({ url, guard }: NatsServer, user: NatsUser): Promise<NatsConnection> {
  const creds = guard?.creds[user] ?? "";
  const inboxPrefix = inboxOf(creds);
  const authenticator = credsAuthenticator(readFileSync(creds));
  return connect({ servers: url, authenticator, ...(inboxPrefix !== undefined && { inboxPrefix }) });
}

/** @param folder for log and data; undefined for a folder of the server's own */
export function startNats(folder?: string): Promise<NatsServer> {
  return start(folder, []);
}

async function start(folder: string | undefined, more: readonly string[]): Promise<NatsServer> {
  const monitor = await freePort();
  const broker = await startBroker(
    {
      name: "nats",
      command: "nats-server",
      argumentsFor: (port, place) => {
        const ports = ["--addr", "127.0.0.1", "--port", String(port), "--http_port", String(monitor)];
        return ports.concat("--jetstream", "--store_dir", join(place, "nats"), ...more);
      },
      ready: /Server is ready/,
    },
    folder,
  );
  return Object.assign(broker, {
    url: `nats://127.0.0.1:${broker.port}`,
    async pendingBytes() {
      const answer = await fetch(`http://127.0.0.1:${monitor}/connz`, { signal: AbortSignal.timeout(2_000) });
      const { connections } = (await answer.json()) as { connections: { pending_bytes: number }[] };
      return connections.map(({ pending_bytes: bytes }) => bytes);
    },
  });
}
