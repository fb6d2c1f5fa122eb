/**
 * Finds the master of one slot of a Redis Cluster each time that a connection to it is opened. A
 * blocking read needs a connection of its own, and a client of the whole Cluster for each would be
 * more than it needs.
 */
import { createConnection, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type * as ioredis from "ioredis";
import type { HostAndPort } from "../broker-url.js";
import { delay } from "../retry.js";

/** The pause after nobody was known to serve the slot. */
const PAUSE_MS = 100;

export interface SlotConnection {
  /**
   * Says who serves the slot now. All connections of a process ask one client: when a master dies,
   * each of them asks, again and again.
   */
  readonly findMaster: () => Promise<HostAndPort | undefined>;
  readonly tls: boolean;
  /** The package's class, which only `connect.ts` loads. */
  readonly AbstractConnector: typeof ioredis.AbstractConnector;
  readonly disconnectTimeoutMs: number;
}

type Connector = NonNullable<ioredis.RedisOptions["Connector"]>;

/** @returns the class of connectors that a client takes as its option `Connector` */
export function slotConnector({ findMaster, tls, AbstractConnector, disconnectTimeoutMs }: SlotConnection): Connector {
  return class extends AbstractConnector {
    constructor() {
      super(disconnectTimeoutMs);
    }

    /** Never fails while it is wanted: the client would give up for good. */
    override async connect(): Promise<Socket> {
      this.connecting = true;
      for (;;) {
        const master = await findMaster();
        if (!this.connecting) throw new Error("Connection is closed.");
        if (master !== undefined) {
          this.stream = tls ? connectTls(master) : createConnection(master);
          this.stream.once("error", (error) => (this.firstError = error));
          return this.stream;
        }
        await delay(PAUSE_MS);
      }
    }
  };
}
