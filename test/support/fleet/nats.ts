/**
 * A real nats-server with JetStream. Messages that it loses when it is killed are lost for good, as
 * in production; what JetStream has acknowledged is there again when it comes back.
 */
import { join } from "node:path";
import { startBroker, type Broker } from "./broker.js";
import { freePort } from "./port.js";

export interface NatsServer extends Broker {
  readonly url: string;
  /**
   * How many bytes it holds back for each of its clients.
   * @throws Error while it is down
   */
  pendingBytes(): Promise<readonly number[]>;
}

/** @param folder where its log and data go; without it, they go to a folder of its own */
export async function startNats(folder?: string): Promise<NatsServer> {
  const monitor = await freePort();
  const broker = await startBroker(
    {
      name: "nats",
      command: "nats-server",
      argumentsFor: (port, place) => {
        const ports = ["--addr", "127.0.0.1", "--port", String(port), "--http_port", String(monitor)];
        return ports.concat("--jetstream", "--store_dir", join(place, "nats"));
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
