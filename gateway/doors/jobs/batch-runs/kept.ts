/**
 * Holds the answers of a batch's lines until the run writes them to the store in pieces. A piece
 * counts only after the batch's record has counted it. At the end, the pieces become files.
 */
import { piecesOf, type Batch, type Pieces } from "../../../batches/batch.js";
import type { BatchFiles } from "./batch-files.js";

/** The run writes a piece of so many bytes at once. */
const LARGE_BYTES = 1024 * 1024;
/** The run begins no further line while so many bytes wait. */
const FULL_BYTES = 16 * LARGE_BYTES;
/**
 * Interval at which the run writes smaller pieces, in ms: at first, the growth with each piece, and
 * the most.
 */
const DUE_MS = { first: 500, each: 20, most: 10_000 };

export interface Taken {
  readonly output: readonly Buffer[];
  readonly errors: readonly Buffer[];
  readonly completed: number;
  readonly failed: number;
  readonly bytes: number;
  /** Keys of requests whose outcomes no run needs after this piece is stored. */
  readonly keys: readonly string[];
}

/** The files that a batch ends with. */
type EndFiles = Partial<Pick<Batch, "outputFile" | "errorFile">>;

export class Kept {
  readonly #files: BatchFiles;
  #output: Buffer[] = [];
  #errors: Buffer[] = [];
  #keys: string[] = [];
  #bytes = 0;
  #takenAt = performance.now();
  #pieces: number;

  constructor(files: BatchFiles, { output, errors }: Batch) {
    this.#files = files;
    this.#pieces = namesOf("o", output).length + namesOf("e", errors).length;
  }

  get isLarge(): boolean {
    return this.#bytes >= LARGE_BYTES;
  }

  get isFull(): boolean {
    return this.#bytes >= FULL_BYTES;
  }

  isDue(now: number): boolean {
    if (this.#bytes === 0) return false;
    return this.isLarge || now - this.#takenAt >= Math.min(DUE_MS.first + DUE_MS.each * this.#pieces, DUE_MS.most);
  }

  add(text: Buffer, isGood: boolean, key: string | undefined): void {
    (isGood ? this.#output : this.#errors).push(text);
    this.#bytes += text.length;
    if (key !== undefined) this.#keys.push(key);
  }

  /** @returns undefined if nothing waits */
  take(): Taken | undefined {
    this.#takenAt = performance.now();
    if (this.#bytes === 0) return undefined;
    const [output, errors, keys, bytes] = [this.#output, this.#errors, this.#keys, this.#bytes];
    this.#output = [];
    this.#errors = [];
    this.#keys = [];
    this.#bytes = 0;
    return { output, errors, keys, bytes, completed: output.length, failed: errors.length };
  }

  /**
   * @returns for outputs and for errors, whether the run has written a piece
   * @throws InferenceError if the batch has written as much as it may
   */
  async write(batch: Batch, { output, errors, bytes }: Taken): Promise<{ output: boolean; errors: boolean }> {
    await this.#files.needRoom(batch, batch.bytes + bytes);
    const write = async (kind: "o" | "e", list: Pieces, texts: readonly Buffer[]) => {
      if (texts.length === 0) return false;
      await this.#files.writePiece(batch, `${kind}.${batch.run}.${piecesOf(list, batch.run)}`, texts);
      this.#pieces++;
      return true;
    };
    const [hasOutput, hasErrors] = await Promise.all([
      write("o", batch.output, output),
      write("e", batch.errors, errors),
    ]);
    return { output: hasOutput, errors: hasErrors };
  }

  /** Makes the files of all pieces. @returns their ids */
  async finish(batch: Batch): Promise<EndFiles> {
    return this.#make(batch, (error) => {
      throw error;
    });
  }

  /**
   * Makes the files of a failed batch from the results until then, each file only if there is room.
   * @param isFinal whether the file of this error can never be made
   */
  async finishFailed(batch: Batch, isFinal: (error: unknown) => boolean): Promise<EndFiles> {
    return this.#make(batch, (error) => {
      if (!isFinal(error)) throw error;
    });
  }

  async #make(batch: Batch, onError: (error: unknown) => void): Promise<EndFiles> {
    const make = async (kind: "o" | "e", list: Pieces, name: string) => {
      if (list.length === 0) return undefined;
      try {
        return await this.#files.makeFile(batch, kind, `${batch.id}_${name}.jsonl`, namesOf(kind, list));
      } catch (error) {
        onError(error);
        return undefined;
      }
    };
    const outputFile = await make("o", batch.output, "output");
    const errorFile = await make("e", batch.errors, "error");
    return { ...(outputFile !== undefined && { outputFile }), ...(errorFile !== undefined && { errorFile }) };
  }

  /**
   * Removes the piece and the files that a run has written but not noted, because the run may have
   * ended between the two steps.
   * @param batch as its record is now
   * @param run a run that has ended
   */
  async forgetUnnoted(batch: Batch, run: number): Promise<void> {
    const names = [`o.${run}.${piecesOf(batch.output, run)}`, `e.${run}.${piecesOf(batch.errors, run)}`];
    await this.#files.removePieces(batch, names);
    for (const kind of ["o", "e"]) await this.#files.removeFile(batch, kind, run);
  }

  /** Removes all pieces of a batch that has ended. */
  async forget(batch: Batch): Promise<void> {
    await this.#files.removePieces(batch, [...namesOf("o", batch.output), ...namesOf("e", batch.errors)]);
  }
}

function namesOf(kind: "o" | "e", list: Pieces): string[] {
  return list.flatMap(([run, count]) => Array.from({ length: count }, (_, i) => `${kind}.${run}.${i}`));
}
