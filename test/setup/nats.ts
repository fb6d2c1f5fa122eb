/** A real nats-server; messages that it loses when it is killed are lost for good, as in production. */
import { join } from "node:path";
import { startBroker, type Broker } from "./broker.js";

export interface NatsServer extends Broker {
  readonly url: string;
}

/** @param folder where its log goes; the caller removes it. */
export async function startNats(folder: string): Promise<NatsServer> {
  const broker = await startBroker({
    ready: /Server is ready/,
    launch: (port) => ({
      name: "nats",
      command: "nats-server",
      args: ["--addr", "127.0.0.1", "--port", String(port)],
      logFile: join(folder, "nats.log"),
    }),
  });
  return Object.assign(broker, { url: `nats://127.0.0.1:${broker.port}` });
}
