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
 * once, unless it is the same one told twice: Ctrl-C reaches a whole process group, and a supervisor passes it on.
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

/** Nobody loses patience within this. */
const ECHO_MS = 300;
