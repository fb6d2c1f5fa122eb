/**
 * Limits how many uploads or downloads run at a time: `count` together, and half of that for a
 * tenant, so that other tenants find some.
 */
import { fixedError } from "#shared/errors.js";

export class Slots {
  readonly #count: number;
  #taken = 0;
  readonly #ofTenants = new Map<string, number>();

  constructor(count: number) {
    this.#count = count;
  }

  /**
   * @returns a function that frees the slot
   * @throws InferenceError `unavailable` if no slot is free
   */
  take(tenant: string): () => void {
    const own = this.#ofTenants.get(tenant) ?? 0;
    if (this.#taken === this.#count || own >= this.#count / 2) throw fixedError("unavailable", "uploads");
    this.#add(tenant, 1);
    return () => this.#add(tenant, -1);
  }

  #add(tenant: string, count: 1 | -1): void {
    const own = (this.#ofTenants.get(tenant) ?? 0) + count;
    this.#taken += count;
    if (own === 0) this.#ofTenants.delete(tenant);
    else this.#ofTenants.set(tenant, own);
  }
}
