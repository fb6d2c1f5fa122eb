/** The requests that this process has ended by itself, for statistics of the whole fleet. */
import { cacheSums, subjectOf, versionSums, type PartName } from "#shared/queue/pieces/report.js";
import type { NamedPart, Reporting } from "#shared/queue/processes/reports.js";

/** A version by its names. */
interface Version {
  readonly model: string;
  readonly version: string;
}

const US_PER_MS = 1_000;

export class EndReport implements Reporting {
  /** By subject: the sums of a part. */
  readonly #parts = new Map<string, number[]>();
  #changes = 0;

  get changes(): number {
    return this.#changes;
  }

  /** @param ms from the admission to the end */
  failed(version: Version, ms: number): void {
    const failUs = Math.max(0, Math.round(ms * US_PER_MS));
    this.#add(version, { of: "version" }, versionSums, { fail: 1, failUs });
  }

  /** A request that the cache has answered. @param us whole µs, from the request to the answer */
  hit(version: Version, us: number): void {
    this.#add(version, { of: "version" }, versionSums, { success: 1, requestUs: us });
    this.#add(version, { of: "cache", n: 0 }, cacheSums, { hits: 1, hitUs: us });
  }

  /**
   * What the cache has taken of requests that it did not answer.
   * @param misses 0 for the time that it took to keep the answer of such a request
   */
  missed(version: Version, misses: 0 | 1, us: number): void {
    this.#add(version, { of: "cache", n: 0 }, cacheSums, { misses, missUs: us });
  }

  parts(): NamedPart[] {
    return Array.from(this.#parts, ([subject, sums]) => ({ subject, sums: [...sums] }));
  }

  #add<Sum extends string>(
    { model, version }: Version,
    part: PartName,
    names: readonly Sum[],
    more: Readonly<Partial<Record<Sum, number>>>,
  ): void {
    const subject = subjectOf({ model, version, part });
    const before = this.#parts.get(subject);
    this.#parts.set(
      subject,
      names.map((name, i) => (before?.[i] ?? 0) + (more[name] ?? 0)),
    );
    this.#changes++;
  }
}

/** Of this process. */
export const endReport = new EndReport();
