/**
 * An upload that a client may send again under the same Idempotency-Key. What the client sends is
 * known only at the end: then the first upload claims the key, and each further one finds the file
 * of the first. An upload that broke off has claimed nothing.
 */
import { createHash } from "node:crypto";
import { fixedError } from "#shared/errors.js";
import { fileKeys } from "#shared/queue/keys.js";
import { keepAnew, keepFirst, readKept } from "#shared/queue/kept-answers.js";
import type { StoredFile } from "#shared/queue/files/files.js";
import type { FileAddress } from "#shared/queue/files/reserve-file.js";
import type { RedisClient } from "#shared/redis/connect.js";
import { askRedis, changeInRedis } from "../../admission/ask-redis.js";
import type { Files, FileTerms } from "../../files/files.js";
import { digestOf } from "./once.js";

type Content = AsyncIterable<Uint8Array>;

/** A file that the first upload under a key has stored. */
interface Claim {
  readonly asked: string;
  readonly id: string;
}

/** Ends an upload whose file is there already. */
class Known extends Error {
  readonly file: StoredFile;

  constructor(file: StoredFile) {
    super("an earlier upload has stored the file");
    this.file = file;
  }
}

/** @param name of the caller's key, from `nameOf` */
export async function uploadOnce(
  { redis, files }: { readonly redis: RedisClient; readonly files: Files },
  { tenant, id, name }: FileAddress & { readonly name: string },
  content: Content,
  terms: () => Promise<FileTerms>,
  write: (content: Content, terms: () => Promise<FileTerms>) => Promise<StoredFile>,
): Promise<{ readonly file: StoredFile; readonly isReplayed: boolean }> {
  const place = fileKeys.upload(name);
  const hash = createHash("sha256");
  async function* hashed(): AsyncGenerator<Uint8Array> {
    for await (const piece of content) {
      hash.update(piece);
      yield piece;
    }
  }
  const fileOf = async (text: string | undefined) => {
    const claim = text === undefined ? undefined : (JSON.parse(text) as Claim);
    return { claim, file: claim && (await files.find({ tenant, id: claim.id })) };
  };
  /** @throws Known, or InferenceError `idempotency_mismatch` */
  const compare = ({ claim, file }: Awaited<ReturnType<typeof fileOf>>, asked: string) => {
    if (claim === undefined || claim.id === id || file === undefined) return;
    if (claim.asked !== asked) throw fixedError("idempotency_mismatch", "usual");
    throw new Known(file);
  };
  const askedIn = (given: FileTerms) => digestOf([given.name, given.purpose, given.ttlMs, hash.digest("base64url")]);
  try {
    const before = await fileOf(await askRedis(() => readKept(redis, place)));
    if (before.file !== undefined) {
      // Nothing is stored of a repeated upload, but all of it is compared.
      for await (const piece of content) hash.update(piece);
      compare(before, askedIn(await terms()));
    }
    const file = await write(hashed(), async () => {
      const given = await terms();
      const asked = askedIn(given);
      const own = JSON.stringify({ asked, id } satisfies Claim);
      const kept = await changeInRedis(() => keepFirst(redis, place, own));
      if (kept === own) return given;
      compare(await fileOf(kept), asked);
      // The file of the claim is gone, or never came to be.
      await changeInRedis(() => keepAnew(redis, place, own));
      return given;
    });
    return { file, isReplayed: false };
  } catch (error) {
    if (error instanceof Known) return { file: error.file, isReplayed: true };
    throw error;
  }
}
