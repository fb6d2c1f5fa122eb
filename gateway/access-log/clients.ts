/** The addresses of clients. Keeps them, because to read an address takes longer than a line. */
import type { IncomingHttpHeaders } from "node:http";
import type { Peers } from "../http/peers.js";

/** Most addresses to keep, and in characters the longest header of a proxy with them. */
const MOST_KEPT = 1_024;
const LONGEST_KEPT = 256;

export class Clients {
  readonly #peers: Peers;
  readonly #kept = new Map<string, string>();

  constructor(peers: Peers) {
    this.#peers = peers;
  }

  /** @param peer the other side of the connection */
  addressOf(peer: string, headers: IncomingHttpHeaders): string {
    const forwarded = this.#peers.areNamed ? String(headers["x-forwarded-for"] ?? "") : "";
    const key = `${peer} ${forwarded}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const address = this.#peers.addressOf({ socket: { remoteAddress: peer }, headers });
    if (forwarded.length > LONGEST_KEPT) return address;
    if (this.#kept.size >= MOST_KEPT) this.#kept.clear();
    this.#kept.set(key, address);
    return address;
  }
}
