/**
 * Finds the master of a Redis Cluster's slot at each connect. A blocking read needs a connection of
 * its own, and a client of the whole Cluster for each such connection would cost too much.
 */
import { createConnection, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type * as ioredis from "ioredis";
import type { HostAndPort } from "../broker-url.js";
import { delay } from "../retry.js";
import type { ClientTls } from "../tls.js";

/** The pause if no master of the slot is known. */
const PAUSE_MS = 100;

export interface SlotConnection {
  /**
   * Finds the slot's current master. All connections of a process share one client for this,
   * because after a master's death each connection asks repeatedly.
   */
  readonly findMaster: () => Promise<HostAndPort | undefined>;
  /** As `clientTls` makes it; absent for connections without TLS. */
  readonly tls?: ClientTls;
  /** The package's class, which only `connect.ts` loads. */
  readonly AbstractConnector: typeof ioredis.AbstractConnector;
  readonly disconnectTimeoutMs: number;
}

type Connector = NonNullable<ioredis.RedisOptions["Connector"]>;

/** @returns the class of connectors for ioredis's option `Connector` */
export function slotConnector({ findMaster, tls, AbstractConnector, disconnectTimeoutMs }: SlotConnection): Connector {
  return class extends AbstractConnector {
    constructor() {
      super(disconnectTimeoutMs);
    }

    /** Fails only after a disconnect, because after a failure the client would give up for good. */
    override async connect(): Promise<Socket> {
      this.connecting = true;
      for (;;) {
        const master = await findMaster();
        if (!this.connecting) throw new Error("Connection is closed.");
        if (master !== undefined) {
          this.stream = tls ? connectTls({ ...master, ...tls }) : createConnection(master);
          this.stream.once("error", (error) => (this.firstError = error));
          return this.stream;
        }
        await delay(PAUSE_MS);
      }
    }
  };
}
