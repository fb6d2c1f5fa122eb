/** Where large things are kept under a name: in NATS (nats/object-store.ts), or in S3. */

export interface ObjectStore {
  /**
   * Keeps what `source` yields under the name, with bounded memory, and resolves when it is kept.
   * An object of that name is replaced. Where it fails there is none, and what is left of it goes
   * with `remove`, or when it is put again.
   * @param name of letters, digits, `.`, `_`, `-` and `/`
   * @returns how many bytes it has
   * @throws StoreUnavailable, StoreFull, and whatever `source` throws
   */
  put(name: string, source: AsyncIterable<Uint8Array>): Promise<number>;
  /**
   * Yields the object's bytes from one of them on, in pieces of up to some 100 KiB. The next piece
   * is fetched when it is asked for, so a slow reader holds no more than two.
   * @throws MissingObject, StoreUnavailable
   */
  read(name: string, from?: number): AsyncIterable<Buffer>;
  /**
   * Removes the object, and what was left of one that was not finished. There may be none.
   * @throws StoreUnavailable
   */
  remove(name: string): Promise<void>;
  close(): Promise<void>;
}

/** The store cannot be asked now; the same call may succeed later. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
}

/** The store has no room for more. */
export class StoreFull extends Error {
  override readonly name = "StoreFull";
}

export class MissingObject extends Error {
  override readonly name = "MissingObject";
}
