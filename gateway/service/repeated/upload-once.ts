/**
 * An upload that a client may send again under the same Idempotency-Key. What the client sends is
 * known only at the end: then the first upload claims the key, in the same step that makes its file
 * (keep-file.lua). Each further one finds this file. An upload that broke off has claimed nothing.
 */
import { createHash } from "node:crypto";
import { fixedError } from "#shared/errors.js";
import { fileKeys } from "#shared/queue/keys.js";
import { readKept } from "#shared/queue/kept-answers.js";
import type { StoredFile } from "#shared/queue/files/files.js";
import { readClaim, type UploadClaim } from "#shared/queue/files/keep-file.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { askRedis } from "../../admission/ask-redis.js";
import { KnownUpload, type Files, type FileTerms } from "../../files/files.js";
import { digestOf } from "./once.js";

type Content = AsyncIterable<Uint8Array>;

/** @param name of the caller's key, from `nameOf` */
export async function uploadOnce(
  { redis, files }: { readonly redis: RedisClient; readonly files: Files },
  { tenant, name }: { readonly tenant: string; readonly name: string },
  content: Content,
  terms: () => Promise<FileTerms>,
  write: (content: Content, terms: () => Promise<FileTerms>) => Promise<StoredFile>,
): Promise<{ readonly file: StoredFile; readonly isReplayed: boolean }> {
  const place = fileKeys.upload(name);
  const hash = createHash("sha256");
  async function* hashed(most: number): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const piece of content) {
      bytes += piece.length;
      if (bytes > most) throw fixedError("idempotency_mismatch", "usual");
      hash.update(piece);
      yield piece;
    }
  }
  const askedIn = (given: FileTerms) => digestOf([given.name, given.purpose, given.ttlMs, hash.digest("base64url")]);
  const fileOf = (claim: UploadClaim | undefined) => claim && files.find({ tenant, id: claim.id });
  const replayed = (claim: UploadClaim, file: StoredFile, asked: string) => {
    if (claim.asked !== asked) throw fixedError("idempotency_mismatch", "usual");
    return { file, isReplayed: true };
  };

  const text = await askRedis(() => readKept(redis, place));
  const before = text === undefined ? undefined : readClaim(text);
  const known = await fileOf(before);
  if (before !== undefined && known !== undefined) {
    // Nothing is stored of a repeated upload, but all of it is compared, up to the file's length.
    for await (const _ of hashed(known.bytes));
    return replayed(before, known, askedIn(await terms()));
  }
  let asked = "";
  try {
    const file = await write(hashed(Infinity), async () => {
      const given = await terms();
      asked = askedIn(given);
      return { ...given, upload: { place, asked } };
    });
    return { file, isReplayed: false };
  } catch (error) {
    if (!(error instanceof KnownUpload)) throw error;
    const file = await fileOf(error.claim);
    // A client has removed the file of the first upload in this moment.
    if (file === undefined) throw fixedError("unavailable", "files");
    return replayed(error.claim, file, asked);
  }
}
