/**
 * The keys of a file and of Redis, and the subjects of tokens, as one. The file's record of a key
 * counts.
 */
import type { FileKeys } from "./file-keys.js";
import type { KnownKeys } from "./known-keys.js";
import type { KnownKey } from "./owner/records.js";
import { isTokenId } from "./owner/owner.js";
import type { Tokens } from "./tokens/tokens.js";

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

/**
 * @param now Redis ms, by which tokens were judged
 * @returns the same, and what there is of the subjects of tokens
 */
export function withTokens(keys: KeyLookup, tokens: Tokens, now: () => number): KeyLookup {
  return {
    get version() {
      return keys.version + tokens.version;
    },
    now,
    find: (id) => keys.find(id),
    peek: (id) => (isTokenId(id) ? tokens.peek(id) : keys.peek(id)),
    async *readAgain(ids) {
      yield* keys.readAgain(ids.filter((id) => !isTokenId(id)));
      let fault: unknown;
      for (const id of ids.filter(isTokenId)) {
        try {
          yield new Map([[id, await tokens.readAgain(id)]]);
        } catch (error) {
          // A tenant that cannot be read keeps no other tenant's streams.
          fault = error;
        }
      }
      if (fault !== undefined) throw fault;
    },
  };
}
