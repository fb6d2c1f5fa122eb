/** A reconciler that makes rounds of a lane while a test looks. */
import { realWorld } from "#shared/world.js";
import type { ModelQueue } from "#shared/queue/work/lane.js";
import { reconcileWhileOpen, type Reconciler } from "../../../worker/lane/reconciler.js";
import { silentBus, silentLog } from "../silent.js";
import { steady } from "./lab.js";

export async function whileReconciling(
  queue: ModelQueue,
  maxIdleMs: Reconciler["maxIdleMs"],
  look: () => Promise<unknown>,
): Promise<void> {
  const stop = new AbortController();
  const alone = { outageGuard: steady(), settler: { bus: silentBus }, models: 1, living: () => 1 };
  const reconciler = { queue, maxIdleMs, ...alone, world: realWorld, log: silentLog };
  const reconciling = reconcileWhileOpen(reconciler, stop.signal);
  try {
    await look();
  } finally {
    stop.abort();
    await reconciling;
  }
}
