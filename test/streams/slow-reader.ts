/** A client that takes nothing, or a little at a time, of a stream's records, on a socket whose buffers fill up. */
import { connect, type Socket } from "node:net";

export interface SlowReader {
  /** Whether the gateway still holds the connection. */
  readonly isOpen: () => boolean;
  close(): void;
}

const SIP_BYTES = 102;
const SIP_EVERY_MS = 100;

/** Resolves when the answer has begun. */
export function readSlowly(gateway: string, id: string, how: "nothing" | "1 KiB/s"): Promise<SlowReader> {
  const { hostname, port } = new URL(gateway);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) });
    let sipping: NodeJS.Timeout | undefined;
    let open = true;
    const reader = { isOpen: () => open, close: () => socket.destroy() };
    socket.on("connect", () => socket.write(`GET /v2/requests/${id}/events HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`));
    socket.once("readable", () => {
      socket.read(SIP_BYTES);
      if (how === "1 KiB/s") sipping = setInterval(() => sip(socket), SIP_EVERY_MS);
      resolve(reader);
    });
    socket.on("error", reject);
    socket.on("close", () => {
      open = false;
      clearInterval(sipping);
    });
  });
}

function sip(socket: Socket): void {
  socket.read(SIP_BYTES);
}
