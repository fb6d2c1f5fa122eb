/**
 * Local time in a time zone (pure): what a clock on the wall shows, and when it does. Where clocks
 * are set forward some local times never come, and where they are set back some come twice.
 */
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
export const DAY_MS = 24 * HOUR;

/** Formatters are slow to make; above this many the oldest is forgotten. */
const MOST_ZONES = 500;
const zones = new Map<string, Zone>();

/** @returns undefined for what names no zone of the IANA database */
export function zoneOf(name: string): Zone | undefined {
  const known = zones.get(name);
  if (known !== undefined) return known;
  // Newer versions of Node would take offsets such as +01:00, too, and older ones do not.
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

/** A local date, as ms since 1970 of its midnight in UTC. */
export type LocalDate = number;

export class Zone {
  readonly #format: Intl.DateTimeFormat;

  constructor(format: Intl.DateTimeFormat) {
    this.#format = format;
  }

  dateOf(instant: number): LocalDate {
    return Math.floor((instant + this.#offsetAt(instant)) / DAY_MS) * DAY_MS;
  }

  /** All that happens to clocks on that date. */
  day(date: LocalDate): LocalDay {
    const around = date - this.#offsetAt(date);
    // Clocks are set by two hours at most, and hardly twice within two days.
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

  /** The first ms after clocks were set. */
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
   * When clocks show a time of this date: once, twice or, where it is skipped, never.
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

  /** When clocks are set. Asked only where `instantsOf` has said that a time never comes. */
  get change(): number {
    return this.#change();
  }
}
