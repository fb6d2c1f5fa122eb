/** The figures of the lines of batches. */
import { cells } from "#shared/metrics/cells.js";

const goodLines = cells.counter("baton_batch_lines_total", { result: "completed" });
const badLines = cells.counter("baton_batch_lines_total", { result: "failed" });

/** Counts lines whose results are stored. */
export function countLines(completed: number, failed: number): void {
  cells.add(goodLines, completed);
  cells.add(badLines, failed);
}
