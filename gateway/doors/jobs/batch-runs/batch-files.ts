/**
 * The files of a batch: the input, the pieces that runs write, and the files made of the pieces.
 */
import { createHash } from "node:crypto";
import { MissingObject, StoreFull } from "#shared/object-store.js";
import { usedForMs, type Batch } from "../../../batches/batch.js";
import type { Tenants } from "../../../auth/tenants.js";
import type { Files } from "../../../files/files.js";

export class BatchFiles {
  readonly #files: Files;
  readonly #tenants: Pick<Tenants, "limitsOf">;

  constructor(files: Files, tenants: Pick<Tenants, "limitsOf">) {
    this.#files = files;
    this.#tenants = tenants;
  }

  /** @returns the bytes from this offset; undefined if there is no such file */
  async read({ tenant, inputFile: id }: Batch, from: number): Promise<AsyncIterable<Buffer> | undefined> {
    const address = { tenant, id };
    return (await this.#files.findUsed(address)) === undefined ? undefined : this.#files.read(address, from);
  }

  /**
   * Checks the limits of files for the results of a batch, before they become a file.
   * @throws InferenceError
   */
  async needRoom({ tenant }: Batch, bytes: number): Promise<void> {
    const { limits } = await this.#tenants.limitsOf(tenant);
    await this.#files.needRoom(tenant, bytes, limits);
  }

  async writePiece({ id }: Batch, piece: string, texts: readonly Buffer[]): Promise<void> {
    await this.#files.store.put(objectOf(id, piece), each(texts));
  }

  /**
   * Makes a file of pieces. Each run has its own file, so two concurrent runs do not write the same
   * file.
   * @returns its id
   * @throws InferenceError
   */
  async makeFile(batch: Batch, kind: string, name: string, pieces: readonly string[]): Promise<string> {
    const address = { tenant: batch.tenant, id: fileOf(batch.id, kind, batch.run) };
    const terms = { name, purpose: "batch_output" } as const;
    const { limits } = await this.#tenants.limitsOf(batch.tenant);
    await this.#files.write(address, this.#joined(batch.id, pieces), () => terms, limits);
    return address.id;
  }

  /** Removes the file that a run has made, unless the batch's record names the file. */
  async removeFile({ id, tenant, outputFile, errorFile }: Batch, kind: string, run: number): Promise<void> {
    const file = fileOf(id, kind, run);
    if (file !== outputFile && file !== errorFile) await this.#files.remove({ tenant, id: file });
  }

  async removePieces({ id }: Batch, pieces: readonly string[]): Promise<void> {
    for (const piece of pieces) await this.#files.store.remove(objectOf(id, piece));
  }

  /** Protects the input of a batch from deletion while the batch runs. */
  async use(batch: Batch, now: number): Promise<void> {
    const { id, tenant, inputFile } = batch;
    await this.#files.use({ tenant, id: inputFile }, id, usedForMs(batch, now));
  }

  async release({ id, tenant, inputFile }: Batch): Promise<void> {
    await this.#files.release({ tenant, id: inputFile }, id);
  }

  async *#joined(batch: string, pieces: readonly string[]): AsyncGenerator<Buffer> {
    for (const piece of pieces) yield* this.#files.store.read(objectOf(batch, piece));
  }
}

/**
 * @returns the fault if the store can never do this for the batch; undefined if the error may pass
 */
export function storeFault(error: unknown): Batch["faults"][number] | undefined {
  if (error instanceof MissingObject) {
    return { code: "output_lost", message: "a part of what had come of the batch is gone", line: null };
  }
  if (!(error instanceof StoreFull)) return undefined;
  return { code: "storage_full", message: "there is no room for what comes of the batch", line: null };
}

function objectOf(batch: string, piece: string): string {
  return `${batch}/${piece}`;
}

function fileOf(batch: string, kind: string, run: number): string {
  const digest = createHash("sha256").update(`${batch} ${kind} ${run}`).digest();
  return `file-${digest.subarray(0, 18).toString("base64url")}`;
}

async function* each(texts: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* texts;
}
