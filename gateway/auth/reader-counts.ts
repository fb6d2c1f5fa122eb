/**
 * How many readers each key and tenant has open at this gateway: event streams, WebSockets and long
 * polls. Each gateway counts by itself, in memory. Readers without a limit count, too, so that a
 * limit that an administrator sets later finds them.
 */
import { oneReaderTooMany } from "../admission/budget.js";
import type { Owner } from "./owner/owner.js";

export class ReaderCounts {
  /** By the name of the owner, as in `OwnerLimit`; owners without readers are absent. */
  readonly #open = new Map<string, number>();

  /** @param name of an owner, as in `OwnerLimit` */
  of(name: string): number {
    return this.#open.get(name) ?? 0;
  }

  /**
   * Counts a reader that opens.
   * @returns a function to call when the reader's connection has closed
   * @throws InferenceError `stream_limit`, and the reader does not count
   */
  take({ tenant, keyId, budget }: Pick<Owner, "tenant" | "keyId" | "budget">): () => void {
    const full = budget?.readers?.find(({ name, most }) => this.of(name) >= most);
    if (full !== undefined) throw oneReaderTooMany(full);
    const names = keyId === undefined ? [`t:${tenant}`] : [`k:${keyId}`, `t:${tenant}`];
    for (const name of names) this.#open.set(name, this.of(name) + 1);
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      for (const name of names) this.#leave(name);
    };
  }

  #leave(name: string): void {
    const left = this.of(name) - 1;
    if (left > 0) this.#open.set(name, left);
    else this.#open.delete(name);
  }
}
