/** Opens in order and closes in reverse, whatever happens in between. */
import type { Logger } from "pino";

export class Lifecycle {
  readonly #log: Logger;
  #closers: { name: string; close: () => Promise<void> | void }[] = [];

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Whatever is opened says here how it is closed. */
  onClose(name: string, close: () => Promise<void> | void): void {
    this.#closers.push({ name, close });
  }

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
 * Runs `stop` once, at the first SIGTERM or SIGINT or when the parent process that asked for it goes away, then exits 0. A second signal exits 1 at
 * once.
 */
export function stopOnSignal(log: Logger, stop: () => Promise<void>): void {
  let stopping = false;
  const begin = (why: string) => {
    if (stopping) process.exit(1);
    stopping = true;
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
