/** The requests that this process has ended with an error, for statistics of the whole fleet. */
import { subjectOf, versionSums } from "#shared/queue/pieces/report.js";
import type { NamedPart, Reporting } from "#shared/queue/processes/reports.js";

/** A version by its names. */
interface Version {
  readonly model: string;
  readonly version: string;
}

interface Failures extends Version {
  fail: number;
  failUs: number;
}

const US_PER_MS = 1_000;

export class EndReport implements Reporting {
  /** By subject. */
  readonly #failures = new Map<string, Failures>();
  #changes = 0;

  get changes(): number {
    return this.#changes;
  }

  /** @param ms from the admission to the end */
  failed({ model, version }: Version, ms: number): void {
    const subject = subjectOf({ model, version, part: { of: "version" } });
    const failures = this.#failures.get(subject) ?? { model, version, fail: 0, failUs: 0 };
    this.#failures.set(subject, failures);
    failures.fail++;
    failures.failUs += Math.max(0, Math.round(ms * US_PER_MS));
    this.#changes++;
  }

  parts(): NamedPart[] {
    return Array.from(this.#failures, ([subject, { fail, failUs }]) => ({
      subject,
      sums: versionSums.map((sum) => (sum === "fail" ? fail : sum === "failUs" ? failUs : 0)),
    }));
  }
}

/** Of this process. */
export const endReport = new EndReport();
