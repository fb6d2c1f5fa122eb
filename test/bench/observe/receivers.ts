/**
 * Latencies of steps that are all traced, while the receiver of traces works, hangs, refuses or is
 * gone. One fleet stands from the beginning, and the receiver changes under it, in turn.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { measureFleet, TINY_SEQUENCES, type FleetResult } from "../steps/scenarios.js";
import { startBenchFleet } from "../support/fleet.js";
import { benchRepository, tiny } from "../support/models.js";
import type { Percentiles } from "../support/statistics.js";
import type { TracedPlan } from "./traced.js";

export const manners = ["takes", "hangs", "refuses", "gone"] as const;
export type Manner = (typeof manners)[number];

export type ReceiversCost = Readonly<Record<Manner, Pick<Percentiles, "p50" | "p99">>> & {
  readonly checked: number;
  readonly wrong: number;
};

/** The part of the fleet's most steps that is offered: queues for a processor would hide all. */
const SHARE = 0.2;
/** Fewer than usual, so that a connection is not idle for long. */
const SEQUENCES = 16;

export async function openReceivers(plan: TracedPlan): Promise<() => Promise<ReceiversCost>> {
  const { folder, onClose } = plan;
  const receiver = new Receiver();
  const url = await receiver.become("takes");
  onClose(() => receiver.become("gone"));
  const fleet = await startBenchFleet({
    folder: join(folder, "receivers"),
    repository: benchRepository(join(folder, "receivers-models")),
    models: [tiny.name],
    workers: 1,
    env: { BATON_LOG_LEVEL: "debug" },
    common: { BATON_TRACE_URL: url, BATON_TRACE_SAMPLE: "1" },
  });
  onClose(() => fleet.dispose());
  const setting = { ...plan, fleet };
  const { stepsPerSecond: most } = await measureFleet(setting, tiny, TINY_SEQUENCES);
  let round = 0;
  return async () => {
    const first = round++ % manners.length;
    const results = new Map<Manner, FleetResult>();
    for (const manner of [...manners.slice(first), ...manners.slice(0, first)]) {
      await receiver.become(manner);
      results.set(manner, await measureFleet(setting, tiny, SEQUENCES, SHARE * most));
    }
    const sum = (of: "checked" | "wrong") => [...results.values()].reduce((total, one) => total + one[of], 0);
    const latencies = [...results].map(([manner, { latencyMs }]) => [manner, latencyMs] as const);
    return {
      ...(Object.fromEntries(latencies) as Record<Manner, Percentiles>),
      checked: sum("checked"),
      wrong: sum("wrong"),
    };
  };
}

class Receiver {
  #manner: Manner = "gone";
  #server: Server | undefined;
  #port = 0;

  /** @returns the address, which stays */
  async become(manner: Manner): Promise<string> {
    this.#manner = manner;
    if (manner === "gone" && this.#server !== undefined) {
      this.#server.closeAllConnections();
      this.#server.close();
      await once(this.#server, "close");
      this.#server = undefined;
    } else if (manner !== "gone" && this.#server === undefined) {
      this.#server = createServer((request, reply) => {
        request.resume().on("end", () => {
          if (this.#manner === "hangs") return;
          reply.writeHead(this.#manner === "refuses" ? 503 : 200, { "content-type": "application/json" }).end("{}");
        });
      }).listen(this.#port, "127.0.0.1");
      await once(this.#server, "listening");
      this.#port = (this.#server.address() as AddressInfo).port;
    }
    return `http://127.0.0.1:${this.#port}/v1/traces`;
  }
}
