/**
 * The report that a worker's beats carry: what its models have counted, as far as Redis does not
 * have it yet. All sums are those since the worker's start, so the worker sends a part again if an
 * answer is lost.
 */
import { partField, partText, type ReportField } from "#shared/queue/pieces/report.js";
import type { ModelReport } from "../lane/model-report.js";

/**
 * Between two reports, in ms. A report makes Redis flush its append-only file, and a beat alone
 * does not.
 */
const EVERY_MS = 500;
/**
 * Bytes of a model's parts in a beat, about. The parts that do not fit go with the next beats, and
 * the parts that have waited longest go first.
 */
const MODEL_BYTES = 300;

/** What Redis has of a part. */
interface Known {
  readonly sums: readonly number[];
  /** False if another server may answer now, without this. */
  readonly isSure: boolean;
}

interface OwnModel {
  readonly report: ModelReport;
  /** The number of its changes that Redis has; undefined if Redis may lack some. */
  toldAt: number | undefined;
}

/** A report on its way. */
interface Sent {
  readonly fields: ReportField[];
  readonly sums: Map<string, readonly number[]>;
  /** Models of which Redis then has everything, with the number of their changes. */
  readonly whole: Map<OwnModel, number>;
  /** How many parts Redis then knows that there are. */
  count: number;
}

/** How the report is made. */
interface Terms {
  /** Makes Redis ms of a time on `World.now()`'s clock. */
  readonly toRedis: (at: number) => number;
  /** Whether no beat will follow, so that everything goes now. */
  readonly isLast?: boolean;
}

export class WorkerReports {
  readonly #worker: string;
  readonly #models: OwnModel[] = [];
  /** By subject: the number of the part's field. */
  readonly #numbers = new Map<string, number>();
  /** By subject, the part that arrived last at the end. */
  readonly #known = new Map<string, Known>();
  /** By subject: sums that have become part of the past, and count no more in this report. */
  readonly #base = new Map<string, readonly number[]>();
  /** How many parts Redis knows that there are. */
  #count = 0;
  #sent: Sent | undefined;
  /** On `World.now()`'s clock. */
  #sentAt = -Infinity;
  #hasMore = false;

  constructor(worker: string) {
    this.#worker = worker;
  }

  add(report: ModelReport): void {
    this.#models.push({ report, toldAt: undefined });
  }

  /** Whether parts wait that did not fit into the last report. */
  get hasMore(): boolean {
    return this.#hasMore;
  }

  /**
   * The report of the next beat; empty if nothing has changed, or if it is too early.
   * @param now on `World.now()`'s clock
   */
  next(now: number, terms: Terms): readonly ReportField[] {
    this.#sent = undefined;
    if (terms.isLast !== true && !this.#hasMore && now - this.#sentAt < EVERY_MS) return [];
    this.#hasMore = false;
    const sent: Sent = { fields: [], sums: new Map(), whole: new Map(), count: this.#count };
    for (const model of this.#models) if (model.report.changes !== model.toldAt) this.#add(model, sent, terms);
    if (sent.fields.length === 0) return [];
    sent.count = this.#numbers.size;
    if (sent.count > this.#count) sent.fields.push({ field: this.#worker, figures: String(sent.count) });
    this.#sent = sent;
    this.#sentAt = now;
    return sent.fields;
  }

  /** Notes that Redis has the report of the last call of `next`. */
  arrived(): void {
    if (this.#sent === undefined) return;
    const { sums: arrived, whole, count } = this.#sent;
    for (const [subject, sums] of arrived) {
      this.#known.delete(subject);
      this.#known.set(subject, { sums, isSure: true });
    }
    for (const [model, changes] of whole) model.toldAt = changes;
    this.#count = count;
    this.#sent = undefined;
  }

  /** Sends all parts again, because another server may answer now, without the newest of them. */
  repeat(): void {
    for (const [subject, { sums }] of this.#known) this.#known.set(subject, { sums, isSure: false });
    this.#count = 0;
    for (const model of this.#models) model.toldAt = undefined;
  }

  /** Begins the sums anew after those that Redis had, which have become part of the past. */
  startAfterPast(): void {
    for (const [subject, { sums }] of this.#known) {
      const base = this.#base.get(subject) ?? [];
      this.#base.set(
        subject,
        sums.map((sum, i) => sum + (base[i] ?? 0)),
      );
    }
    this.#known.clear();
    this.#numbers.clear();
    this.repeat();
  }

  #add(model: OwnModel, { fields, sums: sent, whole }: Sent, { toRedis, isLast = false }: Terms): void {
    let size = 0;
    let isWhole = true;
    for (const { subject, sums, lastAt } of this.#changed(model.report)) {
      const last = lastAt === undefined ? 0 : Math.max(0, Math.floor(toRedis(lastAt)));
      const field = partField(this.#worker, this.#numberOf(subject));
      const figures = partText(subject, last, sums);
      const more = field.length + figures.length;
      isWhole = size === 0 || isLast || size + more <= MODEL_BYTES;
      if (!isWhole) break;
      size += more;
      fields.push({ field, figures });
      sent.set(subject, sums);
    }
    if (isWhole) whole.set(model, model.report.changes);
    else this.#hasMore = true;
  }

  /** The parts that Redis may not have: first the version's own, then by their turns. */
  #changed(report: ModelReport) {
    const [first, ...others] = report.parts().flatMap(({ subject, sums: all, lastAt }) => {
      const base = this.#base.get(subject);
      const sums = base === undefined ? all : all.map((sum, place) => sum - (base[place] ?? 0));
      const { sums: known = [], isSure = true } = this.#known.get(subject) ?? {};
      const isThere = sums.every((sum, place) => sum === (isSure ? (known[place] ?? 0) : 0));
      return isThere ? [] : [{ subject, sums, lastAt }];
    });
    if (first === undefined) return [];
    const turns = new Map([...this.#known.keys()].map((subject, turn) => [subject, turn]));
    const turnOf = ({ subject }: { readonly subject: string }) => turns.get(subject) ?? -1;
    return [first, ...others.toSorted((a, b) => turnOf(a) - turnOf(b))];
  }

  #numberOf(subject: string): number {
    const known = this.#numbers.get(subject);
    if (known !== undefined) return known;
    const number = this.#numbers.size;
    this.#numbers.set(subject, number);
    return number;
  }
}
