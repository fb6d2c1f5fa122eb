/** A server in front of a gateway, in which a test can act between a program's requests. */
import { createServer, request, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";

export interface FrontHooks {
  /** The front waits for this before it passes a request to the gateway. */
  before?(method: string, path: string): Promise<void> | void;
  /** Called when the front has passed the gateway's answer to the program. */
  after?(method: string, path: string): void;
}

export class GatewayFront {
  readonly url: string;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(gateway: string, hooks: FrontHooks): Promise<GatewayFront> {
    const server = createServer((incoming, outgoing) => {
      const { method = "", url: path = "", headers } = incoming;
      const pass = async () => {
        await hooks.before?.(method, path);
        const forward = request(new URL(path, gateway), { method, headers }, (answer) => {
          outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(outgoing).once("finish", () => hooks.after?.(method, path));
        });
        forward.once("error", () => outgoing.destroy());
        incoming.pipe(forward);
      };
      pass().catch(() => outgoing.destroy());
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new GatewayFront(server);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
