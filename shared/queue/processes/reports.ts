/**
 * The report that beats of a worker and notes of another process carry: what the process has
 * counted, as far as Redis does not have it yet. All sums are those since the start of the process,
 * so the process sends a part again if an answer is lost.
 */
import {
  FIRST_PAGE,
  pageField,
  pageText,
  partsOfPage,
  partText,
  type ReportField,
  type ReportPart,
} from "../pieces/report.js";

/** A part with its name among the parts of all versions. */
export interface NamedPart {
  readonly subject: string;
  readonly sums: readonly number[];
  /** On `World.now()`'s clock; undefined for a part without a time. */
  readonly lastAt?: number | undefined;
  /** Whether these are no sums, but how the process stands now. */
  readonly isNow?: boolean;
}

/** Sums that a process reports: of a model, or of everything that it counts. */
export interface Reporting {
  /** Another number after each change. */
  readonly changes: number;
  parts(): readonly NamedPart[];
}

/**
 * Between two reports, in ms. A report makes Redis flush its append-only file, and a beat alone
 * does not. With the beat that follows and what callers share, statistics stay within two seconds.
 */
const EVERY_MS = 1_000;
/**
 * Bytes of a source's pages for each `SOURCE_MS` since the last report, about. The pages that do
 * not fit go with the next reports, and the pages that have waited longest go first. A busy model
 * may always have more to tell, so nothing makes beats more frequent. In a large fleet beats are
 * rare, and each brings more.
 */
const SOURCE_BYTES = 300;
const SOURCE_MS = 250;
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

/** Sums that the process reports together: mostly of a model. */
interface Source {
  readonly report: Reporting;
  pages: Page[];
  /** The number of its changes that Redis has; undefined if Redis may lack some. */
  toldAt: number | undefined;
}

/** A report on its way. */
interface Sent {
  readonly fields: ReportField[];
  readonly sums: Map<string, readonly number[]>;
  readonly pages: Page[];
  /** Sources of which Redis then has everything, with the number of their changes. */
  readonly whole: Map<Source, number>;
  /** How many pages Redis then knows that there are. */
  count: number;
}

/** How the report is made. */
interface Terms {
  /** Makes Redis ms of a time on `World.now()`'s clock; absent if no part has a time. */
  readonly toRedis?: (at: number) => number;
  /** Whether no report will follow, so that everything goes now. */
  readonly isLast?: boolean;
}

export class ProcessReports {
  readonly #process: string;
  readonly #sources: Source[] = [];
  /** How many pages there are. */
  #pages = FIRST_PAGE;
  #hasReported = false;
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

  /** @param process its name */
  constructor(process: string) {
    this.#process = process;
  }

  /** Whether Redis has had a report, as far as the process knows. */
  get hasReported(): boolean {
    return this.#hasReported;
  }

  add(report: Reporting): void {
    this.#sources.push({ report, pages: [], toldAt: undefined });
  }

  /**
   * The next report; empty if nothing has changed, or if it is too early.
   * @param now on `World.now()`'s clock
   */
  next(now: number, terms: Terms = {}): readonly ReportField[] {
    // Redis may have the report before, though its answer is lost.
    for (const subject of this.#sent?.sums.keys() ?? []) this.#doubt(subject);
    this.#sent = undefined;
    const sinceMs = now - this.#sentAt;
    if (terms.isLast !== true && sinceMs < EVERY_MS) return [];
    const most = terms.isLast === true ? Infinity : (SOURCE_BYTES * Math.min(sinceMs, LONGEST_MS)) / SOURCE_MS;
    const sent: Sent = { fields: [], sums: new Map(), pages: [], whole: new Map(), count: this.#count };
    for (const source of this.#sources) {
      if (source.report.changes !== source.toldAt) this.#add(source, sent, most, terms);
    }
    sent.count = this.#pages;
    if (sent.count > this.#count) sent.fields.push({ field: this.#process, figures: String(sent.count) });
    if (sent.fields.length === 0) return [];
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
    for (const [source, changes] of whole) source.toldAt = changes;
    this.#count = count;
    if (count > 0) this.#hasReported = true;
    this.#sent = undefined;
  }

  /** Sends all parts again, because another server may answer now, without the newest of them. */
  repeat(): void {
    for (const subject of this.#known.keys()) this.#doubt(subject);
    this.#count = 0;
    for (const source of this.#sources) source.toldAt = undefined;
  }

  /** Sends all parts again, because the server has lost them. */
  lost(): void {
    this.#hasReported = false;
    this.repeat();
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
    this.#pages = FIRST_PAGE;
    for (const source of this.#sources) source.pages = [];
    this.lost();
  }

  /** What the process has counted until now, without sums that have become part of the past. */
  parts(): ReportPart[] {
    return this.#sources.flatMap((source) =>
      this.#sumsOf(source).flatMap(({ subject, sums }) => partsOfPage(partText(subject, 0, sums))),
    );
  }

  #doubt(subject: string): void {
    this.#known.set(subject, { sums: this.#known.get(subject)?.sums ?? [], isSure: false });
  }

  /** @param most bytes of the source's pages, about */
  #add(source: Source, { fields, sums: sent, pages, whole }: Sent, most: number, { toRedis }: Terms): void {
    const parts = this.#partsOf(source);
    let size = 0;
    let isWhole = true;
    const changed = source.pages.filter(({ subjects }) => subjects.some((one) => parts.get(one)?.isThere === false));
    for (const page of changed.toSorted((a, b) => a.turn - b.turn)) {
      const own = page.subjects.flatMap((subject) => parts.get(subject) ?? []);
      const texts = own.map(({ subject, sums, lastAt }) => {
        const last = lastAt === undefined ? 0 : Math.max(0, Math.floor(toRedis?.(lastAt) ?? 0));
        return partText(subject, last, sums);
      });
      const [field, figures] = [pageField(this.#process, page.number), pageText(texts)];
      const more = field.length + figures.length;
      isWhole = size === 0 || size + more <= most;
      if (!isWhole) break;
      size += more;
      fields.push({ field, figures });
      pages.push(page);
      for (const { subject, sums } of own) sent.set(subject, sums);
    }
    if (isWhole) whole.set(source, source.report.changes);
  }

  /** The parts of a source by subject; each has a page. */
  #partsOf(source: Source) {
    const parts = this.#sumsOf(source).map(({ subject, sums, lastAt, isNow = false }) => {
      const { sums: known = [], isSure = true } = this.#known.get(subject) ?? {};
      // Another server has no more than 0 of sums that are 0, but may have an older number.
      const isThere = (isSure || !isNow) && sums.every((sum, place) => sum === (isSure ? (known[place] ?? 0) : 0));
      return { subject, sums, lastAt, isThere };
    });
    const paged = new Set(source.pages.flatMap(({ subjects }) => subjects));
    for (const { subject, isThere } of parts) {
      if (isThere || paged.has(subject)) continue;
      let page = source.pages.at(-1);
      if (page === undefined || page.subjects.length >= PARTS_A_PAGE) {
        page = { number: this.#pages++, subjects: [], turn: 0 };
        source.pages.push(page);
      }
      page.subjects.push(subject);
    }
    return new Map(parts.map((part) => [part.subject, part]));
  }

  #sumsOf({ report }: Source): readonly NamedPart[] {
    return report.parts().map((part) => {
      const base = part.isNow === true ? undefined : this.#base.get(part.subject);
      return base === undefined ? part : { ...part, sums: part.sums.map((sum, place) => sum - (base[place] ?? 0)) };
    });
  }
}
