/** The load that both broker tests put on a fleet while its broker is killed and restarted. */
import { experiment, type Findings } from "../history/experiment.js";
import type { Fleet } from "../setup/fleet.js";
import { scale, seed } from "./scale.js";

export function underBroken(spreadMs: number, breaking: (fleet: Fleet) => Promise<void>): Promise<Findings<void>> {
  return experiment({
    seed,
    fleet: { gateways: 2, workers: scale.workers, models: ["chain", "simple"] },
    sequences: scale.sequences,
    steps: scale.steps,
    models: ["chain"],
    clients: scale.clients,
    spreadMs,
    breaking,
  });
}
