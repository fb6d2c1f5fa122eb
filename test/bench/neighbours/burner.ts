/** Uses a share of a core, as a flood's client does, and asks no server. */
import { serveJob } from "../support/child.js";

export interface BurnerJob {
  /** Of a core, 0 to 1 and a little more. */
  readonly share: number;
  readonly measureMs: number;
}

const PERIOD_MS = 10;

await serveJob(async ({ share, measureMs }: BurnerJob, measuring): Promise<object> => {
  measuring();
  const over = performance.now() + measureMs;
  for (let period = performance.now(); period < over; period += PERIOD_MS) {
    const until = period + Math.min(1, share) * PERIOD_MS;
    while (performance.now() < until);
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, period + PERIOD_MS - performance.now())));
  }
  return {};
});
