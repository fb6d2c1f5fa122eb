/** Measures what this worker uses and does, from one beat that tells it to the next. */
import { LoadMeter, rounded } from "#shared/queue/processes/load-meter.js";
import { writeLoad } from "#shared/queue/processes/worker-load.js";
import type { ModelReport } from "../lane/model-report.js";

/** As often as gateways note theirs, in ms. */
const EVERY_MS = 5_000;

/** The work of all models since the start. */
interface Work {
  readonly steps: number;
  readonly tokens: number;
  readonly busyMs: number;
}

export interface MeasuredModel {
  readonly holdings: { readonly size: number };
  readonly report?: ModelReport;
}

export class WorkerMeter {
  readonly #leaseMs: number;
  readonly #meter = new LoadMeter();
  #before: { readonly work: Work; readonly at: number } | undefined;

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs;
  }

  /**
   * @param now on `World.now()`'s clock
   * @returns the load as its page has it; undefined if it is too early for the next
   */
  next(now: number, models: Iterable<MeasuredModel>): string | undefined {
    const before = this.#before;
    if (before !== undefined && now - before.at < EVERY_MS) return undefined;
    const all = [...models];
    const reports = all.flatMap(({ report }) => report ?? []);
    const work = sumOf(reports);
    this.#before = { work, at: now };
    const ms = before === undefined ? Infinity : now - before.at;
    // A model that leaves takes its sums along.
    const more = (of: keyof Work) => Math.max(0, work[of] - (before?.work[of] ?? 0));
    return writeLoad({
      ...this.#meter.read(),
      leaseMs: this.#leaseMs,
      stepsPerSecond: rounded((more("steps") * 1_000) / ms),
      tokensPerSecond: rounded((more("tokens") * 1_000) / ms),
      busyRatio: rounded(Math.min(1, more("busyMs") / ms)),
      held: all.reduce((sum, { holdings }) => sum + holdings.size, 0),
      cached: Object.fromEntries(
        reports.map(({ name, cachedBytes }) => [name, cachedBytes] as const).filter(([, bytes]) => bytes > 0),
      ),
    });
  }

  stop(): void {
    this.#meter.stop();
  }
}

function sumOf(reports: readonly ModelReport[]): Work {
  const sum = (of: keyof Work) => reports.reduce((total, { work }) => total + work[of], 0);
  return { steps: sum("steps"), tokens: sum("tokens"), busyMs: sum("busyMs") };
}
