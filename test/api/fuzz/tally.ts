/** Counts requests and answers of a run, for its report. */
import type { Operation } from "./document.js";

export class Tally {
  readonly #asked = { allowed: 0, wrong: 0 };
  /** The number of answers by operation and status. */
  readonly #answers = new Map<string, Map<number, number>>();
  readonly #canSucceed = new Set<string>();

  note({ name, succeeds }: Operation, kind: "allowed" | "wrong", status: number): void {
    this.#asked[kind] += 1;
    if (succeeds) this.#canSucceed.add(name);
    const answers = this.#answers.get(name) ?? new Map<number, number>();
    this.#answers.set(name, answers.set(status, (answers.get(status) ?? 0) + 1));
  }

  /** The operations without a success, although the document declares one, with their statuses. */
  get neverSucceeded(): readonly string[] {
    return [...this.#canSucceed].flatMap((name) => {
      const statuses = [...(this.#answers.get(name)?.keys() ?? [])];
      return statuses.some((status) => status < 300) ? [] : [`${name}: ${statuses.join(", ")}`];
    });
  }

  /** One line for a reader. */
  get report(): string {
    const total = new Map<number, number>();
    for (const answers of this.#answers.values()) {
      for (const [status, count] of answers) total.set(status, (total.get(status) ?? 0) + count);
    }
    const { allowed, wrong } = this.#asked;
    const shown = [...total].toSorted(([one], [other]) => one - other).map(([status, count]) => `${status}: ${count}`);
    return `${this.#answers.size} operations, ${allowed} allowed and ${wrong} wrong requests; ${shown.join(", ")}`;
  }
}
