/**
 * A real nats-server with JetStream. A killed server keeps all messages that JetStream has
 * acknowledged, and loses all other messages for good, as in production.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeNatsAccounts } from "../../../gateway/subscriptions/nats-accounts.js";
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
  /** Settings with which processes connect, and gateways make credentials for subscriptions. */
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Starts a server with the accounts of a deployment.
 * @param folder for log, data and keys
 */
export async function startGuardedNats(folder: string): Promise<NatsServer & { readonly guard: Guard }> {
  const { creds, seed } = await makeNatsAccounts({ server: folder, processes: folder, gateways: folder });
  const config = join(folder, "nats.conf");
  const port = await freePort();
  writeFileSync(config, `include "accounts.conf"\nwebsocket { host: "127.0.0.1", port: ${port}, no_tls: true }\n`);
  const nats = await start(folder, ["--config", config]);
  const webSocketUrl = `ws://127.0.0.1:${port}`;
  const env = {
    BATON_NATS_CREDS: creds,
    BATON_NATS_SIGNING_SEED: seed,
    BATON_NATS_PUBLIC_URLS: `${nats.url},${webSocketUrl}`,
  };
  return Object.assign(nats, { guard: { webSocketUrl, env } });
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
