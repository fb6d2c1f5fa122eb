/** Makes one call of those that come while an earlier call is under way. */
export class Gathering<T, R> {
  readonly #call: (items: readonly T[]) => Promise<R>;
  #next: { readonly items: T[]; readonly result: Promise<R> } | undefined;
  #underWay: Promise<unknown> = Promise.resolve();

  /** @param call at most one at a time */
  constructor(call: (items: readonly T[]) => Promise<R>) {
    this.#call = call;
  }

  /** @returns the result of the call that has taken this item and others */
  add(item: T): Promise<R> {
    if (this.#next !== undefined) {
      this.#next.items.push(item);
      return this.#next.result;
    }
    const items = [item];
    const result = this.#underWay.then(async () => {
      // The steps of a batch end one after the other, within one turn.
      await new Promise(setImmediate);
      this.#next = undefined;
      return this.#call(items);
    });
    this.#underWay = result.catch(() => undefined);
    this.#next = { items, result };
    return result;
  }
}
