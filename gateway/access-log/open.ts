/** Opens the access log of a gateway, and opens its file anew at each SIGHUP. */
export { notingGuard, openAccessLog } from "./access-log.js";
import type { Logger } from "pino";
import { cells } from "#shared/metrics/cells.js";
import { FileSink } from "./sink.js";
import { LineWriter } from "./line-writer.js";

/** How long a stopping gateway tries to write the last lines, in ms. */
const LAST_MS = 1_000;

/** The log tells of lines that wait at most once in this time, in ms. */
const WARN_EVERY_MS = 60_000;

/** The place of the lines. */
export interface Lines {
  write(line: string): void;
  /** How many lines were dropped, because the place did not take them. */
  readonly dropped: number;
  close(): Promise<void>;
}

/**
 * @param place `stdout`, or the path of a file
 * @throws UnusableError if the file cannot be opened
 */
export function openLines(place: string, log: Logger): Lines {
  const sink = place === "stdout" ? FileSink.stdout() : FileSink.open(place);
  let warnedAt = -Infinity;
  let hasWarned = false;
  const writer: LineWriter = new LineWriter(sink, (error) => {
    if (error === undefined) {
      if (hasWarned) log.info({ dropped: writer.dropped }, "access log is written again");
      hasWarned = false;
    } else if (performance.now() - warnedAt >= WARN_EVERY_MS) {
      log.warn({ error: error.message }, "access log cannot be written: lines wait, and beyond 4 MiB are dropped");
      hasWarned = true;
      warnedAt = performance.now();
    }
  });
  const onHangup = (): void => {
    try {
      sink.reopen();
      writer.moved();
    } catch (error) {
      log.warn({ error: String(error) }, "access log cannot be opened anew, and stays where it is");
    }
  };
  cells.show("baton_log_dropped_total", {}, () => writer.dropped);
  if (place !== "stdout") process.on("SIGHUP", onHangup);
  return {
    write: (line) => writer.add(line),
    get dropped() {
      return writer.dropped;
    },
    async close() {
      process.off("SIGHUP", onHangup);
      await writer.close(LAST_MS);
    },
  };
}
