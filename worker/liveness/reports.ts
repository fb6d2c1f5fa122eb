/**
 * The report that a worker's beats carry: what its models have counted, as far as Redis does not
 * have it yet. All sums are those since the worker's start, so the worker sends a part again if an
 * answer is lost.
 */
import { pageField, pageText, partText, type ReportField } from "#shared/queue/pieces/report.js";
import type { ModelReport } from "../lane/model-report.js";

/**
 * Between two reports, in ms. A report makes Redis flush its append-only file, and a beat alone
 * does not.
 */
const EVERY_MS = 500;
/**
 * Bytes of a model's pages for each `MODEL_MS` since the last report, about. The pages that do not
 * fit go with the next reports, and the pages that have waited longest go first. A busy model may
 * always have more to tell, so nothing makes beats more frequent. In a large fleet beats are rare,
 * and each brings more.
 */
const MODEL_BYTES = 300;
const MODEL_MS = 250;
/** Bounds the first report, before which there was none. */
const LONGEST_MS = 10_000;
/**
 * Parts of a page, which is one field. Redis takes 0.7 µs for each field, so most beats should have
 * one for each model: its sums, its times, and its runs of the usual size.
 */
const PARTS_A_PAGE = 3;

/** What Redis has of a part. */
interface Known {
  readonly sums: readonly number[];
  /** False if another server may answer now, without this. */
  readonly isSure: boolean;
}

interface Page {
  readonly number: number;
  readonly subjects: string[];
  /** The number of the report that brought the page last; 0 before. */
  turn: number;
}

interface OwnModel {
  readonly report: ModelReport;
  pages: Page[];
  /** The number of its changes that Redis has; undefined if Redis may lack some. */
  toldAt: number | undefined;
}

/** A report on its way. */
interface Sent {
  readonly fields: ReportField[];
  readonly sums: Map<string, readonly number[]>;
  readonly pages: Page[];
  /** Models of which Redis then has everything, with the number of their changes. */
  readonly whole: Map<OwnModel, number>;
  /** How many pages Redis then knows that there are. */
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
  /** How many pages there are. */
  #pages = 0;
  /** How many reports have arrived. */
  #arrived = 0;
  /** By subject. */
  readonly #known = new Map<string, Known>();
  /** By subject: sums that have become part of the past, and count no more in this report. */
  readonly #base = new Map<string, readonly number[]>();
  /** How many pages Redis knows that there are. */
  #count = 0;
  #sent: Sent | undefined;
  /** On `World.now()`'s clock. */
  #sentAt = -Infinity;

  constructor(worker: string) {
    this.#worker = worker;
  }

  add(report: ModelReport): void {
    this.#models.push({ report, pages: [], toldAt: undefined });
  }

  /**
   * The report of the next beat; empty if nothing has changed, or if it is too early.
   * @param now on `World.now()`'s clock
   */
  next(now: number, terms: Terms): readonly ReportField[] {
    this.#sent = undefined;
    const sinceMs = now - this.#sentAt;
    if (terms.isLast !== true && sinceMs < EVERY_MS) return [];
    const most = terms.isLast === true ? Infinity : (MODEL_BYTES * Math.min(sinceMs, LONGEST_MS)) / MODEL_MS;
    const sent: Sent = { fields: [], sums: new Map(), pages: [], whole: new Map(), count: this.#count };
    for (const model of this.#models) if (model.report.changes !== model.toldAt) this.#add(model, sent, most, terms);
    if (sent.fields.length === 0) return [];
    sent.count = this.#pages;
    if (sent.count > this.#count) sent.fields.push({ field: this.#worker, figures: String(sent.count) });
    this.#sent = sent;
    this.#sentAt = now;
    return sent.fields;
  }

  /** Notes that Redis has the report of the last call of `next`. */
  arrived(): void {
    if (this.#sent === undefined) return;
    const { sums: arrived, pages, whole, count } = this.#sent;
    for (const [subject, sums] of arrived) this.#known.set(subject, { sums, isSure: true });
    this.#arrived++;
    for (const page of pages) page.turn = this.#arrived;
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
    this.#pages = 0;
    for (const model of this.#models) model.pages = [];
    this.repeat();
  }

  /** @param most bytes of the model's pages, about */
  #add(model: OwnModel, { fields, sums: sent, pages, whole }: Sent, most: number, { toRedis }: Terms): void {
    const parts = this.#partsOf(model);
    let size = 0;
    let isWhole = true;
    const changed = model.pages.filter(({ subjects }) => subjects.some((one) => parts.get(one)?.isThere === false));
    for (const page of changed.toSorted((a, b) => a.turn - b.turn)) {
      const own = page.subjects.flatMap((subject) => parts.get(subject) ?? []);
      const texts = own.map(({ subject, sums, lastAt }) => {
        const last = lastAt === undefined ? 0 : Math.max(0, Math.floor(toRedis(lastAt)));
        return partText(subject, last, sums);
      });
      const [field, figures] = [pageField(this.#worker, page.number), pageText(texts)];
      const more = field.length + figures.length;
      isWhole = size === 0 || size + more <= most;
      if (!isWhole) break;
      size += more;
      fields.push({ field, figures });
      pages.push(page);
      for (const { subject, sums } of own) sent.set(subject, sums);
    }
    if (isWhole) whole.set(model, model.report.changes);
  }

  /** The parts of a model by subject; each has a page. */
  #partsOf(model: OwnModel) {
    const parts = model.report.parts().map(({ subject, sums: all, lastAt, isNow }) => {
      const base = isNow === true ? undefined : this.#base.get(subject);
      const sums = base === undefined ? all : all.map((sum, place) => sum - (base[place] ?? 0));
      const { sums: known = [], isSure = true } = this.#known.get(subject) ?? {};
      const isThere = sums.every((sum, place) => sum === (isSure ? (known[place] ?? 0) : 0));
      return { subject, sums, lastAt, isThere };
    });
    const paged = new Set(model.pages.flatMap(({ subjects }) => subjects));
    for (const { subject, isThere } of parts) {
      if (isThere || paged.has(subject)) continue;
      let page = model.pages.at(-1);
      if (page === undefined || page.subjects.length >= PARTS_A_PAGE) {
        page = { number: this.#pages++, subjects: [], turn: 0 };
        model.pages.push(page);
      }
      page.subjects.push(subject);
    }
    return new Map(parts.map((part) => [part.subject, part]));
  }
}
