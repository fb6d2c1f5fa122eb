/** How a process ends: it closes what it has opened, in reverse, and stops at a signal. */
import type { Logger } from "pino";

export class Lifecycle {
  readonly #log: Logger;
  #closers: { name: string; close: () => Promise<void> | void }[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Called for each part when it is opened: says how it is closed. */
  onClose(name: string, close: () => Promise<void> | void): void {
    this.#closers.push({ name, close });
  }

  /**
   * Closes all parts, the last one first. A part that fails to close is logged, and the rest
   * follows.
   */
  async close(): Promise<void> {
    const closers = this.#closers.reverse();
    this.#closers = [];
    for (const { name, close } of closers) {
      try {
        await close();
      } catch (error) {
        this.#log.error({ part: name, error: String(error) }, "close failed");
      }
    }
  }
}

/**
 * Runs `stop` once, at the first SIGTERM or SIGINT, or when its parent process goes away if it has
 * a channel to that one; then exits 0. A second signal exits 1 at once, unless it is the first one
 * told twice: Ctrl-C reaches a whole process group, and a supervisor passes it on.
 */
export function stopOnSignal(log: Logger, stop: () => Promise<void>): void {
  let stoppingSince: number | undefined;
  const begin = (why: string) => {
    if (stoppingSince !== undefined) {
      if (performance.now() - stoppingSince > ECHO_MS) process.exit(1);
      return;
    }
    stoppingSince = performance.now();
    log.info({ why }, "stopping");
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ error: String(error) }, "stop failed");
        process.exit(1);
      },
    );
  };
  process.on("SIGTERM", () => begin("SIGTERM"));
  process.on("SIGINT", () => begin("SIGINT"));
  if (process.send !== undefined) process.on("disconnect", () => begin("parent gone"));
}

/**
 * A signal within this time after the first is the same one told twice: nobody loses patience that
 * soon.
 */
const ECHO_MS = 300;
