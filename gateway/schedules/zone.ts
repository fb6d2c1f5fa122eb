/**
 * Local time in a time zone (pure): the time that clocks show, and when they show it. On days on
 * which clocks go forward some local times never come; when clocks go back some local times come
 * twice.
 */
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
export const DAY_MS = 24 * HOUR;

/**
 * Most zones to remember, because formatters are slow to make. Above this many, forgets the oldest.
 */
const MOST_ZONES = 500;
const zones = new Map<string, Zone>();

/** @returns undefined if the IANA database has no zone of this name */
export function zoneOf(name: string): Zone | undefined {
  const known = zones.get(name);
  if (known !== undefined) return known;
  // Newer versions of Node would also accept offsets such as +01:00, and older versions do not.
  if (!/^[A-Za-z][\w+/-]{0,63}$/.test(name)) return undefined;
  let format;
  try {
    format = new Intl.DateTimeFormat("en", { timeZone: name, timeZoneName: "longOffset" });
  } catch {
    return undefined;
  }
  const [oldest] = zones.keys();
  if (zones.size >= MOST_ZONES && oldest !== undefined) zones.delete(oldest);
  const zone = new Zone(format);
  zones.set(name, zone);
  return zone;
}

/** A local date, as ms since 1970 of that date's midnight in UTC. */
export type LocalDate = number;

export class Zone {
  readonly #format: Intl.DateTimeFormat;

  constructor(format: Intl.DateTimeFormat) {
    this.#format = format;
  }

  dateOf(instant: number): LocalDate {
    return Math.floor((instant + this.#offsetAt(instant)) / DAY_MS) * DAY_MS;
  }

  /** The offsets of that date, before and after a change of clocks. */
  day(date: LocalDate): LocalDay {
    const around = date - this.#offsetAt(date);
    // Clocks change by two hours at most, and hardly twice within two days.
    const from = around - 3 * HOUR;
    const to = around + DAY_MS + 3 * HOUR;
    const offsets = [this.#offsetAt(from), this.#offsetAt(to)] as const;
    return new LocalDay(
      date,
      offsets,
      () => this.#changeBetween(from, to),
      (instant) => this.#offsetAt(instant),
    );
  }

  /** The first ms after clocks have changed. */
  #changeBetween(from: number, to: number): number {
    const before = this.#offsetAt(from);
    let [low, high] = [from, to];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.#offsetAt(middle) === before) low = middle;
      else high = middle;
    }
    return high;
  }

  /** Local time minus UTC, in ms. */
  #offsetAt(instant: number): number {
    const text = this.#format.formatToParts(instant).find(({ type }) => type === "timeZoneName")?.value ?? "";
    const [, sign = "+", hours = "0", minutes = "0", seconds = "0"] =
      /^GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(text) ?? [];
    const size = Number(hours) * HOUR + Number(minutes) * MINUTE + Number(seconds) * SECOND;
    return sign === "-" ? -size : size;
  }
}

export class LocalDay {
  readonly #date: LocalDate;
  readonly #offsets: readonly [before: number, after: number];
  readonly #change: () => number;
  readonly #offsetAt: (instant: number) => number;

  constructor(
    date: LocalDate,
    offsets: readonly [before: number, after: number],
    change: () => number,
    offsetAt: (instant: number) => number,
  ) {
    this.#date = date;
    this.#offsets = offsets;
    this.#change = change;
    this.#offsetAt = offsetAt;
  }

  /**
   * When clocks show a time of this date: once, twice, or never if clocks skip the time.
   * @param minute of the day
   */
  instantsOf(minute: number): readonly number[] {
    const local = this.#date + minute * MINUTE;
    const [before, after] = this.#offsets;
    if (before === after) return [local - before];
    return [local - before, local - after]
      .filter((instant, i) => this.#offsetAt(instant) === this.#offsets[i])
      .sort((a, b) => a - b);
  }

  /** When clocks change. A caller reads this only if `instantsOf` has returned no time. */
  get change(): number {
    return this.#change();
  }
}
