/** How Prometheus finds a process. */

/** The addresses that stand for all addresses of a machine. */
const areAll: ReadonlySet<string> = new Set(["0.0.0.0", "::", "[::]"]);

export class MetricsPlace {
  readonly #host: string;
  readonly #port: number;

  /** @param host on which the process listens */
  constructor(host: string, port: number) {
    this.#host = host;
    this.#port = port;
  }

  /**
   * The address for the fleet, with the port.
   * @param local this machine's address as others see it, for a listener on all addresses
   */
  address(local: string): string {
    const host = areAll.has(this.#host) ? local : this.#host;
    return `${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${this.#port}`;
  }
}
