/** How a process ends: it closes its parts in reverse order, and stops at a signal. */
import type { Logger } from "pino";

export class Lifecycle {
  readonly #log: Logger;
  #closers: { name: string; close: () => Promise<void> | void }[] = [];
  #closing: Promise<void> | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Registers how to close a part. Called as the part opens. */
  onClose(name: string, close: () => Promise<void> | void): void {
    this.#closers.push({ name, close });
  }

  /**
   * Closes all parts, the last part first. If a part fails to close, logs the error and continues.
   * A further call waits for the calls before it, and then closes the parts that opened meanwhile.
   */
  close(): Promise<void> {
    this.#closing = this.#closing?.then(() => this.#closeAll()) ?? this.#closeAll();
    return this.#closing;
  }

  async #closeAll(): Promise<void> {
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
 * Runs `stop` once and exits 0: at the first SIGTERM or SIGINT, or when a parent process with a
 * channel to this process goes away. A second signal exits 1 at once, unless it repeats the first:
 * Ctrl-C reaches a whole process group, and a supervisor passes the signal on.
 * @returns stops without a signal. The next signal is still the first, which spares what closes.
 */
export function stopOnSignal(log: Logger, stop: () => Promise<void>): (why: string) => void {
  let signalledAt: number | undefined;
  let isStopping = false;
  const begin = (why: string) => {
    if (isStopping) return;
    isStopping = true;
    log.info({ why }, "stopping");
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ error: String(error) }, "stop failed");
        process.exit(1);
      },
    );
  };
  const hear = (why: string) => {
    if (signalledAt !== undefined && performance.now() - signalledAt > ECHO_MS) process.exit(1);
    signalledAt ??= performance.now();
    begin(why);
  };
  process.on("SIGTERM", () => hear("SIGTERM"));
  process.on("SIGINT", () => hear("SIGINT"));
  if (process.send !== undefined) process.on("disconnect", () => hear("parent gone"));
  return begin;
}

/**
 * A signal within this time after the first, in ms, is a repetition of the first. No person presses
 * Ctrl-C twice that fast.
 */
const ECHO_MS = 300;
