/**
 * Reads the whole file of a batch before any line runs: counts the requests, and finds lines that
 * repeat the `custom_id` of an earlier line. So a run that begins in the middle of the file need
 * not read the lines before.
 */
import { setImmediate } from "node:timers/promises";
import type { Batch } from "../../../batches/batch.js";
import { IdSet } from "../../../batches/id-set.js";
import { LineCutter, type Line } from "../../../batches/json-lines.js";
import { customIdOf } from "../../../batches/line.js";

/** Longest line of a file, in bytes. */
export const MOST_LINE_BYTES = 16 * 1024 * 1024;
/** Most requests of a file. The ids of so many requests take 32 MiB during the validation. */
const MOST_REQUESTS = 1_000_000;
/**
 * Most lines of a file, blank lines included. A gigabyte of blank lines would keep the process busy
 * for long, and make the bits below more than Redis should hold.
 */
const MOST_LINES = 2 * MOST_REQUESTS;

export interface Validated {
  readonly total: number;
  /** A bit for each line, by its number; undefined if no id comes twice. */
  readonly duplicates: Buffer | undefined;
}

/**
 * @returns the fault of the whole file, or its counts; undefined if `signal` aborts before the end
 */
export async function validate(
  file: AsyncIterable<Buffer>,
  signal: AbortSignal,
): Promise<Validated | { fault: Batch["faults"][number] } | undefined> {
  const cutter = new LineCutter({ offset: 0, line: 0 }, MOST_LINE_BYTES);
  const found = new Found();
  for await (const chunk of file) {
    if (signal.aborted) return undefined;
    found.add(cutter.push(chunk));
    if (isTooLong(cutter, found)) return { fault: tooManyLines };
    // Lets other work of the process run between the pieces of a large file.
    await setImmediate();
  }
  found.add(cutter.end());
  if (isTooLong(cutter, found)) return { fault: tooManyLines };
  if (found.total === 0) return { fault: { code: "empty_file", message: "the file has no requests", line: null } };
  return { total: found.total, duplicates: found.duplicates };
}

function isTooLong({ count }: LineCutter, { total }: Found): boolean {
  return total > MOST_REQUESTS || count > MOST_LINES;
}

const tooManyLines: Batch["faults"][number] = {
  code: "too_many_lines",
  message: `a file may have ${MOST_REQUESTS} requests, and ${MOST_LINES} lines, at most`,
  line: null,
};

class Found {
  total = 0;
  duplicates: Buffer | undefined;
  readonly #ids = new IdSet();

  add(lines: readonly Line[]): void {
    for (const { number, bytes } of lines) {
      this.total++;
      const id = bytes && customIdOf(bytes);
      if (id !== undefined && !this.#ids.add(id)) this.#mark(number);
    }
  }

  #mark(number: number): void {
    const byte = number >> 3;
    let bits = this.duplicates ?? Buffer.alloc(1024);
    if (byte >= bits.length) bits = Buffer.concat([bits, Buffer.alloc(byte + bits.length)]);
    bits[byte] = (bits[byte] ?? 0) | (1 << (number & 7));
    this.duplicates = bits;
  }
}

/** Whether a line's bit is set. */
export function isMarked(bits: Buffer | undefined, number: number): boolean {
  return bits !== undefined && ((bits[number >> 3] ?? 0) & (1 << (number & 7))) !== 0;
}
