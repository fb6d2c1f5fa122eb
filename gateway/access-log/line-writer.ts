/**
 * Gathers lines in one buffer, and writes it every 100 ms or 64 KiB. No request waits for the place
 * of the lines: while it takes nothing, lines gather up to a limit, and the writer drops and counts
 * all further lines.
 */

/** The place of the lines: a file or a pipe. */
export interface Sink {
  /**
   * Begins to write these bytes.
   * @param done called after this call has returned, with an error or the number of bytes written
   */
  write(bytes: Buffer, done: (error: NodeJS.ErrnoException | null, written: number) => void): void;
}

export interface WriterLimits {
  readonly bufferBytes: number;
  readonly everyMs: number;
  /** Beyond this many bytes that wait, lines are dropped. */
  readonly waitingBytes: number;
}

export const usualLimits: WriterLimits = { bufferBytes: 65_536, everyMs: 100, waitingBytes: 4_194_304 };

const NEWLINE = 10;
const tooSlow: NodeJS.ErrnoException = new Error("its reader is too slow");

export class LineWriter {
  readonly #sink: Sink;
  readonly #limits: WriterLimits;
  readonly #onFault: (error: NodeJS.ErrnoException | undefined) => void;
  #buffer: Buffer;
  #length = 0;
  /** Buffers that wait, oldest first; the first is being written. */
  readonly #full: Buffer[] = [];
  /** How many bytes of the first are written. */
  #written = 0;
  #waitingBytes = 0;
  #isWriting = false;
  /** Whether the rest of a line belongs to another place than its beginning. */
  #hasMoved = false;
  #hasFault = false;
  #timer: NodeJS.Timeout | undefined;
  #dropped = 0;
  #onEmpty: (() => void) | undefined;

  /** @param onFault called with an error when writing begins to fail, and without one afterwards */
  constructor(sink: Sink, onFault: (error?: NodeJS.ErrnoException) => void, limits = usualLimits) {
    this.#sink = sink;
    this.#limits = limits;
    this.#onFault = onFault;
    this.#buffer = Buffer.allocUnsafeSlow(limits.bufferBytes);
  }

  /** How many lines have been dropped since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  /** @param line in ASCII, shorter than a buffer, with its newline */
  add(line: string): void {
    const { bufferBytes, waitingBytes } = this.#limits;
    if (this.#length + line.length > bufferBytes) {
      if (this.#waitingBytes + this.#length + bufferBytes > waitingBytes) {
        this.#dropped++;
        this.#noteFault(tooSlow);
        return;
      }
      this.#turnOver();
    }
    this.#length += this.#buffer.write(line, this.#length, "latin1");
    this.#arm();
  }

  /** To be called when the sink goes on in another place: that place gets whole lines only. */
  moved(): void {
    this.#hasMoved = true;
    this.#write();
  }

  /** Writes the lines that wait, for at most so many ms. */
  async close(patienceMs: number): Promise<void> {
    if (this.#length > 0) this.#turnOver();
    if (this.#full.length === 0) return;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
      setTimeout(resolve, patienceMs);
    });
    clearTimeout(this.#timer);
  }

  #arm(): void {
    this.#timer ??= setTimeout(this.#onTime, this.#limits.everyMs).unref();
  }

  readonly #onTime = (): void => {
    this.#timer = undefined;
    // While the sink takes nothing, the buffer fills first, because a buffer takes its memory even
    // if it holds a single line.
    if (this.#full.length === 0 && this.#length > 0) this.#turnOver();
    else this.#write();
    if (this.#length > 0) this.#arm();
  };

  #turnOver(): void {
    this.#full.push(this.#buffer.subarray(0, this.#length));
    this.#waitingBytes += this.#length;
    this.#buffer = Buffer.allocUnsafeSlow(this.#limits.bufferBytes);
    this.#length = 0;
    this.#write();
  }

  #write(): void {
    const [bytes] = this.#full;
    if (bytes === undefined) return this.#onEmpty?.();
    if (this.#isWriting) return;
    if (this.#hasMoved && this.#written > 0) this.#written = bytes.lastIndexOf(NEWLINE, this.#written - 1) + 1;
    this.#hasMoved = false;
    this.#isWriting = true;
    this.#sink.write(bytes.subarray(this.#written), this.#onWritten);
  }

  readonly #onWritten = (error: NodeJS.ErrnoException | null, written: number): void => {
    this.#isWriting = false;
    if (error !== null) {
      // A full pipe is no fault: its reader is slow.
      if (error.code !== "EAGAIN") this.#noteFault(error);
      this.#arm();
      return;
    }
    this.#written += written;
    const [bytes] = this.#full;
    if (bytes !== undefined && this.#written >= bytes.length) {
      this.#full.shift();
      this.#waitingBytes -= bytes.length;
      this.#written = 0;
    }
    if (this.#full.length === 0) this.#noteFault(undefined);
    this.#write();
  };

  #noteFault(error: NodeJS.ErrnoException | undefined): void {
    if (this.#hasFault === (error !== undefined)) return;
    this.#hasFault = error !== undefined;
    this.#onFault(error);
  }
}
