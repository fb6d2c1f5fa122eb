/**
 * A step with traces and with the access log, beside a step without. All fleets stand from the
 * beginning, and the load goes to one after the other.
 */
import { createServer } from "node:http";
import { join } from "node:path";
import type { AddressInfo } from "node:net";
import { measureFleet, TINY_SEQUENCES, type FleetResult, type Timing } from "../steps/scenarios.js";
import { parts, startBenchFleet } from "../support/fleet.js";
import { benchRepository, tiny } from "../support/models.js";

const kinds = ["plain", "sampled", "traced", "logged"] as const;
export type Kind = (typeof kinds)[number];

/** µs of CPU of all servers for a step, by kind. */
export type TracedCost = Readonly<Record<Kind, number>> & {
  /** Bytes of traces that the receiver got for a step of the fleet that traces all. */
  readonly traceBytes: number;
  readonly checked: number;
  readonly wrong: number;
};

export interface TracedPlan {
  readonly folder: string;
  /** Files of expected outputs, by the model's size. */
  readonly expected: ReadonlyMap<number, string>;
  readonly timing: Timing;
  readonly onClose: (close: () => Promise<unknown>) => void;
}

export async function openTraced(plan: TracedPlan): Promise<() => Promise<TracedCost>> {
  const { folder, onClose } = plan;
  const repository = benchRepository(join(folder, "traced-models"));
  let received = 0;
  const receiver = createServer((request, reply) => {
    request.on("data", (chunk: Buffer) => (received += chunk.length));
    request.on("end", () => reply.setHeader("content-type", "application/json").end("{}"));
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  onClose(() => new Promise((resolve) => receiver.close(resolve)));
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/v1/traces`;
  const settings: Readonly<Record<Kind, Readonly<Record<string, string>>>> = {
    plain: {},
    sampled: { BATON_TRACE_URL: url, BATON_TRACE_SAMPLE: "0.01" },
    traced: { BATON_TRACE_URL: url, BATON_TRACE_SAMPLE: "1" },
    logged: { BATON_ACCESS_LOG: join(folder, "access.log") },
  };
  const fleets = await Promise.all(
    kinds.map(async (kind) => {
      const place = join(folder, `traced-${kind}`);
      const common = settings[kind];
      // The log lines of batches tell the load's results, and are the same for all.
      const env = { BATON_LOG_LEVEL: "debug" };
      const fleet = await startBenchFleet({ folder: place, repository, models: [tiny.name], workers: 1, env, common });
      onClose(() => fleet.dispose());
      return [kind, fleet] as const;
    }),
  );
  let round = 0;
  return async () => {
    const first = round++ % kinds.length;
    const results = new Map<Kind, FleetResult>();
    let traceBytes = 0;
    for (const [kind, fleet] of [...fleets.slice(first), ...fleets.slice(0, first)]) {
      const before = received;
      const result = await measureFleet({ ...plan, fleet }, tiny, TINY_SEQUENCES);
      results.set(kind, result);
      if (kind === "traced") traceBytes = (received - before) / result.checked;
    }
    const all = [...results.values()];
    const sum = (of: "checked" | "wrong") => all.reduce((total, one) => total + one[of], 0);
    const cpuUs = kinds.map((kind) => [kind, serverCpuUs(results.get(kind))] as const);
    return {
      ...(Object.fromEntries(cpuUs) as Record<Kind, number>),
      traceBytes,
      checked: sum("checked"),
      wrong: sum("wrong"),
    };
  };
}

function serverCpuUs(result: FleetResult | undefined): number {
  return parts.reduce((sum, part) => sum + (result?.cpuUs[part] ?? 0), 0);
}
