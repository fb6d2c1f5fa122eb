/**
 * Objects in S3, or in a store with S3's protocol. Amazon's SDK finds region, credentials and
 * endpoint in its usual places.
 */
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  NoSuchKey,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
  UploadPartCommand,
  type CompletedPart,
} from "@aws-sdk/client-s3";
import { MissingObject, StoreFull, StoreUnavailable, type ObjectStore } from "#shared/object-store.js";

/** S3 takes up to 10 000 parts. Each part but the last must have at least 5 MiB. */
const PART_BYTES = 8 * 1024 * 1024;
/** Most bytes that a reader gets at a time. */
const PIECE_BYTES = 131_072;
const REQUEST_MS = 30_000;

export class S3ObjectStore implements ObjectStore {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #prefix: string;

  constructor(bucket: string, prefix: string) {
    this.#bucket = bucket;
    this.#prefix = prefix;
    const { AWS_ENDPOINT_URL_S3: own, AWS_ENDPOINT_URL: all } = process.env;
    this.#client = new S3Client({
      // The SDK would put the bucket into the host name, which only Amazon's own servers resolve.
      forcePathStyle: (own ?? all) !== undefined,
      requestHandler: { requestTimeout: REQUEST_MS, connectionTimeout: 5_000 },
    });
  }

  async put(name: string, source: AsyncIterable<Uint8Array>): Promise<number> {
    const place = this.#place(name);
    const parts: CompletedPart[] = [];
    let upload: string | undefined;
    let size = 0;
    const send = async (bytes: Buffer) => {
      upload ??= (await this.#ask(() => this.#client.send(new CreateMultipartUploadCommand(place)))).UploadId;
      const part = { ...place, UploadId: upload, PartNumber: parts.length + 1, Body: bytes };
      const { ETag } = await this.#ask(() => this.#client.send(new UploadPartCommand(part)));
      parts.push({ ETag, PartNumber: part.PartNumber });
    };
    let rest: Buffer = Buffer.alloc(0);
    for await (const part of inParts(source)) {
      size += part.length;
      if (part.length < PART_BYTES) rest = part;
      else await send(part);
    }
    if (parts.length === 0) {
      await this.#ask(() => this.#client.send(new PutObjectCommand({ ...place, Body: rest })));
      return size;
    }
    if (rest.length > 0) await send(rest);
    const whole = { ...place, UploadId: upload, MultipartUpload: { Parts: parts } };
    await this.#ask(() => this.#client.send(new CompleteMultipartUploadCommand(whole)));
    return size;
  }

  async *read(name: string, from = 0): AsyncGenerator<Buffer> {
    const place = this.#place(name);
    const range = from === 0 ? {} : { Range: `bytes=${from}-` };
    let body;
    try {
      ({ Body: body } = await this.#client.send(new GetObjectCommand({ ...place, ...range })));
    } catch (error) {
      if (error instanceof NoSuchKey) throw new MissingObject(`there is no object ${name}`, { cause: error });
      if (error instanceof S3ServiceException && error.$metadata.httpStatusCode === 416) return;
      throw failure(error);
    }
    try {
      for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
        const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
        for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
      }
    } catch (error) {
      throw failure(error);
    }
  }

  async remove(name: string): Promise<void> {
    const place = this.#place(name);
    await this.#ask(() => this.#client.send(new DeleteObjectCommand(place)));
    for (const { UploadId, Key } of await this.#begun(place.Key)) {
      if (Key !== place.Key) continue;
      const abort = new AbortMultipartUploadCommand({ ...place, UploadId });
      await this.#ask(() => this.#client.send(abort));
    }
  }

  close(): Promise<void> {
    this.#client.destroy();
    return Promise.resolve();
  }

  #place(name: string) {
    return { Bucket: this.#bucket, Key: `${this.#prefix}/${name}` };
  }

  /** The object's unfinished multipart uploads. */
  async #begun(prefix: string) {
    try {
      const list = new ListMultipartUploadsCommand({ Bucket: this.#bucket, Prefix: prefix });
      return (await this.#client.send(list)).Uploads ?? [];
    } catch (error) {
      // Not every server has this call. The other servers forget unfinished uploads in their own
      // ways.
      if (error instanceof S3ServiceException && error.$metadata.httpStatusCode === 501) return [];
      throw failure(error);
    }
  }

  async #ask<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      throw failure(error);
    }
  }
}

function failure(cause: unknown): Error {
  const isFull = cause instanceof S3ServiceException && /quota|storage.?full|507/i.test(cause.name);
  return isFull
    ? new StoreFull("S3 has no room", { cause })
    : new StoreUnavailable("S3 cannot be asked now", { cause });
}

/** Yields parts of equal size, and the rest last. The rest may be empty. */
async function* inParts(source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let part = Buffer.allocUnsafeSlow(PART_BYTES);
  let filled = 0;
  for await (const piece of source) {
    for (let taken = 0; taken < piece.length;) {
      const some = piece.subarray(taken, taken + PART_BYTES - filled);
      part.set(some, filled);
      filled += some.length;
      taken += some.length;
      if (filled < PART_BYTES) continue;
      yield part;
      part = Buffer.allocUnsafeSlow(PART_BYTES);
      filled = 0;
    }
  }
  yield part.subarray(0, filled);
}
