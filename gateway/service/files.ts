/** The operations on the files of a tenant. */
import { randomBytes } from "node:crypto";
import { fixedError } from "#shared/errors.js";
import type { StoredFile } from "#shared/queue/files/files.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { askRedis } from "../admission/ask-redis.js";
import type { Files, FileTerms } from "../files/files.js";
import { Slots } from "../files/slots.js";
import { ParameterError } from "../generation/parameters.js";
import type { Caller } from "./caller.js";
import type { Page, PageTerms } from "./page.js";
import { nameOf } from "./repeated/once.js";
import { uploadOnce } from "./repeated/upload-once.js";

/** Which files a list should have, and in which order. */
export interface FileFilter {
  readonly isNewestFirst: boolean;
  /** Undefined for all files. */
  readonly purpose: string | undefined;
}

export type FileView = ReturnType<typeof viewOf>;

/** Most uploads and downloads at a time. Each holds up to half a MiB. */
const MOST_UPLOADS = 64;
const MOST_DOWNLOADS = 256;
const ID_BYTES = 18;

export class FileService {
  /** A door takes a slot before it receives a file, and frees the slot after the file. */
  readonly uploads = new Slots(MOST_UPLOADS);
  /** A door takes a slot before it sends a file, and frees the slot after the file. */
  readonly downloads = new Slots(MOST_DOWNLOADS);
  readonly #files: Files;
  readonly #redis: RedisClient;

  constructor(files: Files, redis: RedisClient) {
    this.#files = files;
    this.#redis = redis;
  }

  /**
   * Refuses an upload early if the limits would refuse it at the end.
   * @throws InferenceError `payload_too_large`, `file_limit`, `storage_full` or `unavailable`
   */
  async needRoom({ tenant, budget }: Caller, bytes: number): Promise<void> {
    await this.#files.needRoom(tenant, bytes, budget?.counts);
  }

  /**
   * Stores a new file.
   * @param terms called after the last byte of `content`
   * @param key the client's Idempotency-Key
   * @throws InferenceError `payload_too_large`, `file_limit`, `storage_full`,
   * `idempotency_mismatch`, `outcome_unknown` or `unavailable`, and each error of `content` and
   * `terms`
   */
  async write(
    caller: Caller,
    content: AsyncIterable<Uint8Array>,
    terms: () => Promise<FileTerms>,
    key?: string,
  ): Promise<{ readonly file: FileView; readonly isReplayed: boolean }> {
    const { tenant, budget } = caller;
    const address = { tenant, id: `file-${randomBytes(ID_BYTES).toString("base64url")}` };
    const write = (source: AsyncIterable<Uint8Array>, given: () => Promise<FileTerms>) =>
      this.#files.write(address, source, given, budget?.counts);
    if (key === undefined) return { file: viewOf(await write(content, terms)), isReplayed: false };
    const { file, isReplayed } = await uploadOnce(
      { redis: this.#redis, files: this.#files },
      { tenant, name: nameOf(caller, key) },
      content,
      terms,
      write,
    );
    return { file: viewOf(file), isReplayed };
  }

  /**
   * Lists the files.
   * @throws InferenceError
   */
  async list(
    { tenant }: Caller,
    { limit, after }: PageTerms,
    { isNewestFirst, purpose }: FileFilter,
  ): Promise<Page<FileView>> {
    const terms = { after, count: limit + 1, isNewestFirst, purpose };
    const found = await askRedis(() => this.#files.list(tenant, terms));
    if (found === undefined) throw new ParameterError("after", `after names no file: '${after ?? ""}'`);
    return { data: found.slice(0, limit).map(viewOf), hasMore: found.length > limit };
  }

  /** @throws InferenceError `unknown_file` or `unavailable` */
  async find(caller: Caller, id: string): Promise<FileView> {
    return viewOf(await this.#find(caller, id));
  }

  /**
   * @returns the file, and its bytes, of which none are read before the first is asked for
   * @throws InferenceError `unknown_file` or `unavailable`; the bytes throw these, too
   */
  async read(
    caller: Caller,
    id: string,
  ): Promise<{ readonly file: FileView; readonly content: AsyncGenerator<Buffer> }> {
    const file = await this.#find(caller, id);
    return { file: viewOf(file), content: this.#files.read(file) };
  }

  /** @throws InferenceError `unknown_file`, `file_in_use`, `outcome_unknown` or `unavailable` */
  async remove({ tenant }: Caller, id: string): Promise<void> {
    const said = await this.#files.remove({ tenant, id });
    if (said === "unknown") throw fixedError("unknown_file", "usual");
    if (said === "in_use") throw fixedError("file_in_use", "usual");
  }

  async #find({ tenant }: Caller, id: string): Promise<StoredFile> {
    const file = await this.#files.find({ tenant, id });
    if (file === undefined) throw fixedError("unknown_file", "usual");
    return file;
  }
}

/** OpenAI's view of a file, with times in seconds. */
function viewOf({ id, bytes, createdAt, expiresAt, name, purpose }: StoredFile) {
  return {
    id,
    object: "file",
    bytes,
    created_at: Math.floor(createdAt / 1_000),
    expires_at: expiresAt === undefined ? undefined : Math.floor(expiresAt / 1_000),
    filename: name,
    purpose,
    status: "processed",
  };
}
