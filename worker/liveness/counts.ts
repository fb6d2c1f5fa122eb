/** The figures of this worker's part in the fleet. */
import { cells } from "#shared/metrics/cells.js";

/** Why a worker is no longer among the living. */
type Departure = "dead" | "left";

export class LivenessCounts {
  readonly #buried = { dead: buriedCell("dead"), left: buriedCell("left") };
  readonly #delay = cells.histogram("baton_beat_delay_seconds");

  /** @param why `left`: this worker itself leaves the fleet */
  buried(why: Departure): void {
    cells.add(this.#buried[why]);
  }

  /** @param lateMs the time from a beat's due time to the beat, in ms */
  beat(lateMs: number): void {
    cells.observe(this.#delay, Math.max(0, lateMs) / 1_000);
  }
}

function buriedCell(why: Departure) {
  return cells.counter("baton_workers_buried_total", { why });
}
