/**
 * The files of tenants: records in Redis, and bytes in a store. A writer begins a file in Redis
 * before it stores the first byte, so that upkeep can find the rest of an unfinished file.
 */
import type { Logger } from "pino";
import { fixedError, InferenceError } from "#shared/errors.js";
import { MissingObject, StoreFull, StoreUnavailable, type ObjectStore } from "#shared/object-store.js";
import { dropFile } from "#shared/queue/files/drop-file.js";
import { dueFiles } from "#shared/queue/files/due-files.js";
import {
  listFiles,
  placeOfFile,
  readFile,
  readFiles,
  readSums,
  readUsedFile,
  type StoredFile,
} from "#shared/queue/files/files.js";
import { forgetFile } from "#shared/queue/files/forget-file.js";
import { keepFile, type FilePurpose, type UploadClaim, type UploadKey } from "#shared/queue/files/keep-file.js";
import { reserveFile, type FileAddress, type FileLimits, type Reserved } from "#shared/queue/files/reserve-file.js";
import { useFile } from "#shared/queue/files/use-file.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { delay } from "#shared/retry.js";
import { askRedis, changeInRedis } from "../admission/ask-redis.js";
import { tooManyOf, type CountLimits } from "../admission/budget.js";

/** The limits of files, of which `fileBytes` is for each. */
type Limits = FileLimits & { readonly fileBytes: number };

export interface FilesSettings {
  readonly redis: RedisClient;
  readonly store: ObjectStore;
  readonly limits: Limits;
  readonly ttlMs: number;
  readonly log: Logger;
}

/** The facts of a file that its writer knows after the last byte. */
export interface FileTerms {
  readonly name: string;
  readonly purpose: FilePurpose;
  /** How long the file lives; undefined for the usual time. */
  readonly ttlMs?: number | undefined;
  /** Absent without an Idempotency-Key. */
  readonly upload?: UploadKey;
}

/** Ends a write whose file an earlier upload under the same Idempotency-Key has stored. */
export class KnownUpload extends Error {
  readonly claim: UploadClaim;

  constructor(claim: UploadClaim) {
    super("an earlier upload has stored the file");
    this.claim = claim;
  }
}

export interface FileQuery {
  /** Id of the file after which the page begins. */
  readonly after: string | undefined;
  readonly count: number;
  readonly isNewestFirst: boolean;
  readonly purpose: string | undefined;
}

/** Bytes between two checks of the limits. */
const STEP_BYTES = 8 * 1024 * 1024;
/**
 * A writer counts as lost after this long without a sign of life. A live writer gives signs more
 * often.
 */
const LEASE_MS = 120_000;
const RENEW_MS = 30_000;
/** Files per read of a list. */
const LOOKED_AT = 100;
/** How often upkeep looks for files to remove, and how soon it retries a failed removal. */
const TIDY_EVERY_MS = 5_000;
const AGAIN_MS = 60_000;
const TIDIED_AT_ONCE = 20;

/** The tenant's own limits; what is absent is as the deployment says. */
type OwnLimits = Pick<CountLimits, "files" | "file_bytes">;

export class Files {
  readonly store: ObjectStore;
  readonly #settings: FilesSettings;

  constructor(settings: FilesSettings) {
    this.#settings = settings;
    this.store = settings.store;
  }

  /**
   * Stores a file. A second write of a stored file changes nothing. After a failure nothing of the
   * file is left, except that after `outcome_unknown` the file may be whole.
   * @param terms called after the last byte of `source`
   * @param own limits of the tenant; undefined if it has none
   * @throws InferenceError, KnownUpload, and each error of `source` and `terms`
   */
  async write(
    address: FileAddress,
    source: AsyncIterable<Uint8Array>,
    terms: () => Promise<FileTerms> | FileTerms,
    own?: OwnLimits,
  ): Promise<StoredFile> {
    const limits = this.#limitsOf(own);
    const said = await this.#reserve(address, 0, true, limits);
    if (said !== "reserved") {
      const kept = said === "gone" ? await this.find(address) : undefined;
      if (kept !== undefined) return kept;
      throw await this.#refusal(address.tenant, said, limits);
    }
    try {
      const bytes = await this.store.put(address.id, this.#counted(address, source, limits));
      const { ttlMs = this.#settings.ttlMs, upload, ...given } = await terms();
      const kept = await changeInRedis(() => keepFile(this.#settings.redis, address, { ...given, ttlMs }, upload));
      if (kept.said === "known") throw new KnownUpload(kept.claim);
      if (kept.said === "gone") throw fixedError("unavailable", "files");
      const { createdAt, expiresAt } = kept;
      return { ...address, ...given, createdAt, expiresAt, bytes };
    } catch (error) {
      // After `outcome_unknown` the file may be whole; if not, upkeep removes it.
      if (!(error instanceof InferenceError && error.code === "outcome_unknown")) void this.#abandon(address);
      throw refusalOf(error);
    }
  }

  /** @returns undefined if the tenant has no such file */
  find(address: FileAddress): Promise<StoredFile | undefined> {
    return askRedis(() => readFile(this.#settings.redis, address));
  }

  /** The same for a file in use, which does not expire meanwhile. */
  findUsed(address: FileAddress): Promise<StoredFile | undefined> {
    return askRedis(() => readUsedFile(this.#settings.redis, address));
  }

  /**
   * Yields the file's bytes from an offset on. A reader that takes nothing holds two pieces of
   * about 100 KiB.
   * @throws InferenceError
   */
  async *read({ id }: FileAddress, from = 0): AsyncGenerator<Buffer> {
    try {
      yield* this.store.read(id, from);
    } catch (error) {
      throw refusalOf(error);
    }
  }

  /**
   * A page of the tenant's files.
   * @returns undefined if `after` is not a file of the tenant
   */
  async list(tenant: string, { after, count, isNewestFirst, purpose }: FileQuery): Promise<StoredFile[] | undefined> {
    const { redis } = this.#settings;
    const place = after === undefined ? -1 : await placeOfFile(redis, { tenant, id: after }, isNewestFirst);
    if (place === undefined) return undefined;
    const found: StoredFile[] = [];
    for (let from = place + 1; found.length < count; from += LOOKED_AT) {
      const ids = await listFiles(redis, tenant, { from, count: LOOKED_AT, isNewestFirst });
      const files = await readFiles(redis, tenant, ids);
      found.push(...files.filter((one) => purpose === undefined || one.purpose === purpose));
      if (ids.length < LOOKED_AT) break;
    }
    return found.slice(0, count);
  }

  /** Removes the file. If the store does not answer now, upkeep removes the bytes later. */
  async remove(address: FileAddress): Promise<"dropped" | "in_use" | "unknown"> {
    if ((await this.find(address)) === undefined) return "unknown";
    const said = await changeInRedis(() => dropFile(this.#settings.redis, address));
    if (said === "in_use") return said;
    await this.#erase(address).catch(() => undefined);
    return "dropped";
  }

  /**
   * Keeps the file from deletion and expiry until `release`, but for no longer than `forMs`.
   * @param user of which a file may have many; the same user may call again, for more time
   * @returns whether there is such a file
   */
  async use(address: FileAddress, user: string, forMs: number): Promise<boolean> {
    return (await changeInRedis(() => useFile(this.#settings.redis, address, user, forMs))) === "noted";
  }

  async release(address: FileAddress, user: string): Promise<void> {
    await changeInRedis(() => useFile(this.#settings.redis, address, user, 0));
  }

  /**
   * Refuses an upload early if the limits would refuse it at the end.
   * @param own limits of the tenant; undefined if it has none
   * @throws InferenceError
   */
  async needRoom(tenant: string, bytes: number, own?: OwnLimits): Promise<void> {
    const limits = this.#limitsOf(own);
    const { fileBytes, tenantBytes, allBytes } = limits;
    if (bytes > fileBytes) throw tooLarge(fileBytes);
    const sums = await askRedis(() => readSums(this.#settings.redis, tenant));
    if (sums.bytes + bytes > tenantBytes) throw await this.#refusal(tenant, "tenant_bytes", limits);
    if (sums.allBytes + bytes > allBytes) throw await this.#refusal(tenant, "all_bytes", limits);
  }

  /** Removes expired, dropped and unfinished files, until `signal` aborts. */
  async tidy(signal: AbortSignal): Promise<void> {
    const { redis, log } = this.#settings;
    while (!signal.aborted) {
      try {
        const due = await dueFiles(redis, TIDIED_AT_ONCE, AGAIN_MS);
        // A removal may fail because of that file alone, so the other removals continue. A later
        // round retries the failed removal.
        const removals = await Promise.allSettled(due.map((address) => this.#erase(address)));
        const failed = removals.flatMap((one) => (one.status === "rejected" ? [String(one.reason)] : []));
        if (due.length > failed.length) log.info({ files: due.length - failed.length }, "files removed");
        if (failed.length > 0) log.warn({ files: failed.length, error: failed[0] }, "files could not be removed now");
        if (due.length === TIDIED_AT_ONCE && failed.length < due.length) continue;
      } catch (error) {
        log.debug({ error: String(error) }, "files cannot be removed now");
      }
      await delay(TIDY_EVERY_MS, signal);
    }
  }

  /** Counts the bytes, and renews the writer's lease from time to time. */
  async *#counted(address: FileAddress, source: AsyncIterable<Uint8Array>, limits: Limits): AsyncGenerator<Uint8Array> {
    const { fileBytes } = limits;
    let bytes = 0;
    let told = 0;
    const tell = async () => {
      const said = await this.#reserve(address, bytes, false, limits);
      if (said !== "reserved") throw await this.#refusal(address.tenant, said, limits);
    };
    const renewing = setInterval(() => void tell().catch(() => undefined), RENEW_MS);
    try {
      for await (const piece of source) {
        bytes += piece.length;
        if (bytes > fileBytes) throw tooLarge(fileBytes);
        if (bytes - told >= STEP_BYTES) {
          await tell();
          told = bytes;
        }
        yield piece;
      }
      await tell();
    } finally {
      clearInterval(renewing);
    }
  }

  #limitsOf({ files, file_bytes: bytes }: OwnLimits = {}): Limits {
    const { limits } = this.#settings;
    return { ...limits, tenantFiles: files ?? limits.tenantFiles, tenantBytes: bytes ?? limits.tenantBytes };
  }

  #reserve(address: FileAddress, bytes: number, isNew: boolean, limits: Limits): Promise<Reserved> {
    const { redis } = this.#settings;
    return changeInRedis(() => reserveFile(redis, address, { bytes, leaseMs: LEASE_MS, isNew }, limits));
  }

  async #abandon(address: FileAddress): Promise<void> {
    try {
      await dropFile(this.#settings.redis, address);
      await this.#erase(address);
    } catch {
      // Upkeep finds the file after the end of the lease.
    }
  }

  async #erase(address: FileAddress): Promise<void> {
    await this.store.remove(address.id);
    await forgetFile(this.#settings.redis, address);
  }

  async #refusal(
    tenant: string,
    said: Exclude<Reserved, "reserved">,
    { tenantBytes, allBytes, tenantFiles, allFiles }: Limits,
  ): Promise<InferenceError> {
    if (said === "gone") return fixedError("unavailable", "files");
    if (said === "tenant_files")
      return new InferenceError("file_limit", `${tenantFiles} files are as many as are allowed`, tooManyOf("files"));
    if (said === "all_files")
      return new InferenceError("storage_full", `${allFiles} files are kept, and no more can be`);
    const { bytes } = await askRedis(() => readSums(this.#settings.redis, tenant));
    if (said === "all_bytes") {
      return new InferenceError(
        "storage_full",
        `all files together would be larger than the limit of ${allBytes} bytes`,
      );
    }
    const text = `the files would be larger together than the limit of ${tenantBytes} bytes; they have ${bytes} now`;
    return new InferenceError("file_limit", text, tooManyOf("file_bytes"));
  }
}

export function tooLarge(fileBytes: number): InferenceError {
  return new InferenceError("payload_too_large", `the file is larger than the limit of ${fileBytes} bytes`);
}

/** The refusal for a failure of the store. */
function refusalOf(cause: unknown): unknown {
  if (cause instanceof StoreUnavailable) return fixedError("unavailable", "files", { cause });
  if (cause instanceof StoreFull) return fixedError("storage_full", "usual", { cause });
  if (cause instanceof MissingObject) return fixedError("unknown_file", "usual", { cause });
  return cause;
}
