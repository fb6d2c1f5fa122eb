/**
 * The peers of connections: the proxies that an operator trusts, and the clients behind them. Any
 * client may write the headers of a proxy, so these count only from a trusted peer.
 */
import type { IncomingMessage } from "node:http";
import ipaddr from "ipaddr.js";
import { isListed, type AddressRanges } from "../webhooks/addresses.js";

/** Most proxies in a row to look through. */
const MOST_PROXIES = 32;

export class Peers {
  readonly #trusted: AddressRanges;

  /** @param trusted ranges of proxies (`BATON_TRUSTED_PROXIES`) */
  constructor(trusted: AddressRanges = []) {
    this.#trusted = trusted;
  }

  /** Whether the operator has named proxies. */
  get areNamed(): boolean {
    return this.#trusted.length > 0;
  }

  isTrusted(address: string | undefined): boolean {
    return address !== undefined && ipaddr.isValid(address) && isListed(ipaddr.process(address), this.#trusted);
  }

  /**
   * The address of the client. From a trusted proxy it is the last address in `X-Forwarded-For`
   * that is no trusted proxy itself, because everything before that address may be made up.
   */
  addressOf({ socket, headers }: Pick<IncomingMessage, "headers"> & { readonly socket: Peer }): string {
    let address = socket.remoteAddress ?? "";
    if (this.isTrusted(address)) {
      const before = String(headers["x-forwarded-for"] ?? "").split(",");
      for (const text of before.slice(-MOST_PROXIES).reverse()) {
        if (!ipaddr.isValid(text.trim())) break;
        address = text.trim();
        if (!this.isTrusted(address)) break;
      }
    }
    return ipaddr.isValid(address) ? ipaddr.process(address).toString() : address;
  }
}

interface Peer {
  readonly remoteAddress?: string | undefined;
}
