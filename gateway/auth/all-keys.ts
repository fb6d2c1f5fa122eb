/** The keys of a file and of Redis as one. The file's record of a key counts. */
import type { FileKeys } from "./file-keys.js";
import type { KnownKey, KnownKeys } from "./known-keys.js";

/** How a gateway looks keys up. */
export type KeyLookup = Pick<KnownKeys, "find" | "peek" | "readAgain" | "version" | "now">;

/** @param inRedis undefined if the file is the only place of keys */
export function allKeys(file: FileKeys | undefined, inRedis: KnownKeys | undefined): KeyLookup {
  if (file === undefined && inRedis !== undefined) return inRedis;
  return {
    get version() {
      return (file?.version ?? 0) + (inRedis?.version ?? 0);
    },
    // Until Redis has told its time, the keys of a file expire by this process's clock.
    now: () => inRedis?.now() || Date.now(),
    find: (id) => file?.find(id) ?? inRedis?.find(id),
    peek: (id) => file?.find(id) ?? inRedis?.peek(id),
    readAgain: (ids) => inRedis?.readAgain(ids) ?? none(ids),
  };
}

async function* none(ids: readonly string[]): AsyncGenerator<ReadonlyMap<string, KnownKey | undefined>, void> {
  yield await Promise.resolve(new Map(ids.map((id) => [id, undefined])));
}
