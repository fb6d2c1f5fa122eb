/** Clients that offer to go on in another protocol (Java's sends `Upgrade: h2c` with every request) are answered as if they had not. */
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";

const offers: ReadonlySet<string> = new Set(["upgrade", "http2-settings"]);

/** Node has stopped parsing the connection at the offer: it reads the request again, without. */
export function replayAsPlain(server: Server, incoming: IncomingMessage, socket: Duplex, rest: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = incoming;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = "", value = ""] = rawHeaders.slice(i, i + 2);
    if (name.toLowerCase() === "connection") lines.push(`${name}: ${withoutOffers(value)}`);
    else if (!offers.has(name.toLowerCase())) lines.push(`${name}: ${value}`);
  }
  server.emit("connection", socket);
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), rest]));
}

function withoutOffers(connection: string): string {
  const kept = connection.split(",").filter((option) => !offers.has(option.trim().toLowerCase()));
  return kept.length === 0 ? "keep-alive" : kept.join(",").trim();
}
