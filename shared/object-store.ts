/** Keeps large objects by name: in NATS (nats/object-store.ts), or in S3. */

export interface ObjectStore {
  /**
   * Stores the bytes that `source` yields, with bounded memory, and resolves after all are stored.
   * Replaces an object of that name. After a failure there is no object, and `remove` or another
   * `put` removes the rest.
   * @param name of letters, digits, `.`, `_`, `-` and `/`
   * @returns the object's number of bytes
   * @throws StoreUnavailable, StoreFull, and each error of `source`
   */
  put(name: string, source: AsyncIterable<Uint8Array>): Promise<number>;
  /**
   * Yields the object's bytes from an offset on, in pieces of up to about 100 KiB. Fetches at most
   * one piece ahead of the reader, so a slow reader holds two pieces at most.
   * @throws MissingObject, StoreUnavailable
   */
  read(name: string, from?: number): AsyncIterable<Buffer>;
  /**
   * Removes the object, and the rest of an unfinished object. Succeeds if there is none.
   * @throws StoreUnavailable
   */
  remove(name: string): Promise<void>;
  close(): Promise<void>;
}

/** The store does not answer now; the same call may succeed later. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
}

/** The store has no room. */
export class StoreFull extends Error {
  override readonly name = "StoreFull";
}

export class MissingObject extends Error {
  override readonly name = "MissingObject";
}
