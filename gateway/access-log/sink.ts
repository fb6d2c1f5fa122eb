/**
 * Writes to a file, a pipe or standard output, and never blocks the process. A pipe is opened so
 * that a full one refuses bytes at once, and the disk is a matter of node's other threads.
 */
import { closeSync, constants, fstatSync, openSync, write, writeSync } from "node:fs";
import { UnusableError } from "#shared/exit.js";
import type { Sink } from "./line-writer.js";

/** Appends, and never waits for the other end of a pipe. */
const FLAGS = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;
const MODE = 0o640;
/** In bytes. Nothing comes between the bytes of a write to a pipe up to this size (PIPE_BUF). */
const WHOLE = 4_096;
const STDOUT = 1;
const NEWLINE = 10;

export class FileSink implements Sink {
  readonly #path: string;
  #fd: number;
  #isPipe: boolean;
  #isWriting = false;
  /** The file before the last `reopen`, until the write under way has ended. */
  #former: number | undefined;

  private constructor(path: string, fd: number, isPipe: boolean) {
    this.#path = path;
    this.#fd = fd;
    this.#isPipe = isPipe;
  }

  /** @throws UnusableError if the file cannot be opened */
  static open(path: string): FileSink {
    try {
      const fd = openSync(path, FLAGS, MODE);
      return new FileSink(path, fd, !fstatSync(fd).isFile());
    } catch (error) {
      throw new UnusableError(`BATON_ACCESS_LOG names a file that cannot be opened (${reasonOf(error)}).`);
    }
  }

  /**
   * Opens standard output once more, because the flag that keeps a write from blocking would also
   * hold for the process's other lines.
   */
  static stdout(): FileSink {
    try {
      return FileSink.open("/proc/self/fd/1");
    } catch {
      // A socket, or a system without this folder: another thread writes, and may block.
      return new FileSink("", STDOUT, false);
    }
  }

  /**
   * Opens the file anew, because an operator has renamed it.
   * @throws Error if that fails; lines then go on to the file before
   */
  reopen(): void {
    const fd = openSync(this.#path, FLAGS, MODE);
    if (this.#isWriting && this.#former === undefined) this.#former = this.#fd;
    else closeSync(this.#fd);
    this.#fd = fd;
    this.#isPipe = !fstatSync(fd).isFile();
  }

  write(bytes: Buffer, done: (error: NodeJS.ErrnoException | null, written: number) => void): void {
    if (this.#isPipe) {
      const { error, written } = this.#writeNow(bytes);
      process.nextTick(done, error, written);
      return;
    }
    this.#isWriting = true;
    write(this.#fd, bytes, 0, bytes.length, null, (error, written) => {
      this.#isWriting = false;
      if (this.#former !== undefined) closeSync(this.#former);
      this.#former = undefined;
      done(error, written);
    });
  }

  /** Writes as much as the pipe takes now, in pieces of whole lines. */
  #writeNow(bytes: Buffer): { readonly error: NodeJS.ErrnoException | null; readonly written: number } {
    let written = 0;
    try {
      while (written < bytes.length) {
        const rest = bytes.subarray(written, written + WHOLE);
        const end = rest.length < WHOLE ? rest.length : rest.lastIndexOf(NEWLINE) + 1;
        written += writeSync(this.#fd, rest, 0, end === 0 ? rest.length : end);
      }
    } catch (error) {
      if (written === 0) return { error: error as NodeJS.ErrnoException, written };
    }
    return { error: null, written };
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
