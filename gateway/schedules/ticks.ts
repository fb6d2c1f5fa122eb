/**
 * The times at which a schedule is due (pure), called ticks. cron-parser reads the fields of a cron
 * expression. This module does not use cron-parser's walk over time: for `15,45 2 * * *`, the walk
 * fires twice on a day that skips that hour, and it gives up for ever at a midnight that clocks
 * skip.
 *
 * If clocks go forward and skip a time of day, its tick comes at the moment of the change: one tick
 * for all skipped times of a day. If clocks show a time twice, only the first counts. Only if the
 * expression means all hours (`*`), ticks keep their pace, and local time does not matter.
 */
import { CronExpressionParser } from "cron-parser";
import { DAY_MS, zoneOf, type LocalDate, type LocalDay, type Zone } from "./zone.js";

export type Rhythm =
  | { readonly cron: string; readonly timezone: string }
  /** In ms, from `anchor` on. */
  | { readonly every: number; readonly anchor: number };

/** 29 February comes after eight years at the latest. */
const MOST_DAYS = 9 * 366;

/**
 * The ticks after a time, in order. Ends if no tick comes for nine years, for example on 30
 * February.
 * @param after ms since 1970, exclusive
 */
export function* ticksAfter(rhythm: Rhythm, after: number): Generator<number, void> {
  if ("every" in rhythm) {
    const { every, anchor } = rhythm;
    for (let i = Math.max(0, Math.floor((after - anchor) / every) + 1); ; i++) yield anchor + i * every;
  }
  const cron = parsed(rhythm.cron);
  const zone = knownZone(rhythm.timezone);
  let last = after;
  // A skipped time of one date may come on the next date.
  let date = zone.dateOf(after) - DAY_MS;
  for (let from = date; date - from < MOST_DAYS * DAY_MS; date = following(cron, date)) {
    if (!isDay(cron, date)) continue;
    for (const tick of ticksOf(cron, zone.day(date))) {
      if (tick <= last) continue;
      yield tick;
      last = tick;
      from = date;
    }
  }
}

/** The first tick after a time; undefined if none comes. */
export function tickAfter(rhythm: Rhythm, after: number): number | undefined {
  const [tick] = take(ticksAfter(rhythm, after), 1);
  return tick;
}

/** The newest tick from `from` to `to`, both inclusive; undefined if there is none. */
export function newestTick(rhythm: Rhythm, from: number, to: number): number | undefined {
  if ("every" in rhythm) {
    const { every, anchor } = rhythm;
    const tick = anchor + Math.floor((to - anchor) / every) * every;
    return tick >= Math.max(from, anchor) ? tick : undefined;
  }
  const cron = parsed(rhythm.cron);
  const zone = knownZone(rhythm.timezone);
  const oldest = zone.dateOf(from) - DAY_MS;
  for (let date = zone.dateOf(to); date >= oldest; date -= DAY_MS) {
    if (!isDay(cron, date)) continue;
    const tick = ticksOf(cron, zone.day(date)).findLast((one) => one <= to);
    if (tick !== undefined) return tick >= from ? tick : undefined;
  }
  return undefined;
}

export function take(ticks: Iterable<number>, most: number): number[] {
  const taken: number[] = [];
  if (most > 0) {
    for (const tick of ticks) if (taken.push(tick) >= most) break;
  }
  return taken;
}

/** The days on which and the times at which a cron expression fires. */
interface Cron {
  /** Whether the expression means all hours. */
  readonly isHourly: boolean;
  /** Minutes of a day, in order. */
  readonly times: readonly number[];
  readonly months: ReadonlySet<number>;
  readonly days: ReadonlySet<number>;
  readonly weekdays: ReadonlySet<number>;
  /** If an expression restricts both kinds of days, either day is enough, as in other programs. */
  readonly anyDay: boolean;
  readonly anyWeekday: boolean;
}

const NAMES = "sun|mon|tue|wed|thu|fri|sat|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec";
const FIELD = new RegExp(`^(?:[0-9*,/-]|${NAMES})+$`, "i");
const LONGEST = 256;
const NO_DATE = "there is no such date"; // for example 30 February

/**
 * The fault of an expression, as the end of a sentence; undefined if the expression will fire.
 * Anything but plain cron is a fault, because programs disagree about its meaning.
 */
export function cronFault(text: string): string | undefined {
  if (text.length > LONGEST) return `it has more than ${LONGEST} characters`;
  const fields = text.trim().split(/\s+/);
  if (text.trim().startsWith("@")) return "shorthands with @ are not known; five fields are needed";
  if (fields.length !== 5) {
    return `five fields are needed (minute, hour, day of the month, month, day of the week), not ${fields.length}`;
  }
  const wrong = fields.find((field) => !FIELD.test(field));
  if (wrong !== undefined) return `'${wrong}' has other characters than numbers, names of months or days, * , - and /`;
  let cron;
  try {
    cron = parsed(text);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    return said.includes("explicit day of month") ? NO_DATE : said;
  }
  const [first] = take(ticksOfDates(cron), 1);
  return first === undefined ? NO_DATE : undefined;
}

/**
 * Dates on which the expression fires. The range begins with a leap year, so it has a 29 February.
 */
function* ticksOfDates(cron: Cron): Generator<LocalDate, void> {
  const first = Date.UTC(2024, 0, 1);
  for (let days = 0; days < MOST_DAYS; days++) if (isDay(cron, first + days * DAY_MS)) yield first + days * DAY_MS;
}

/** Most parsed expressions to remember. Above this many, forgets the oldest. */
const MOST_PARSED = 1_000;
const known = new Map<string, Cron>();

/** @throws Error that names the fault */
function parsed(text: string): Cron {
  let cron = known.get(text);
  if (cron === undefined) {
    cron = parse(text);
    const [oldest] = known.keys();
    if (known.size >= MOST_PARSED && oldest !== undefined) known.delete(oldest);
    known.set(text, cron);
  }
  return cron;
}

function parse(text: string): Cron {
  const { minute, hour, dayOfMonth, month, dayOfWeek } = CronExpressionParser.parse(text).fields;
  const hours = numbers(hour.values);
  const minutes = numbers(minute.values);
  return {
    isHourly: hours.length === 24,
    times: hours.flatMap((one) => minutes.map((other) => 60 * one + other)),
    months: new Set(numbers(month.values)),
    days: new Set(numbers(dayOfMonth.values)),
    // Sunday is 0 or 7.
    weekdays: new Set(numbers(dayOfWeek.values).map((day) => day % 7)),
    anyDay: dayOfMonth.isWildcard,
    anyWeekday: dayOfWeek.isWildcard,
  };
}

function numbers(values: readonly (number | string)[]): number[] {
  return [...new Set(values.map(Number))].sort((a, b) => a - b);
}

function isDay({ months, days, weekdays, anyDay, anyWeekday }: Cron, date: LocalDate): boolean {
  const day = new Date(date);
  if (!months.has(day.getUTCMonth() + 1)) return false;
  const isOfMonth = days.has(day.getUTCDate());
  const isOfWeek = weekdays.has(day.getUTCDay());
  return anyDay || anyWeekday ? isOfMonth && isOfWeek : isOfMonth || isOfWeek;
}

/**
 * The next date that may be a day of the expression. Skips the rest of a month that cannot match.
 */
function following({ months }: Cron, date: LocalDate): LocalDate {
  const day = new Date(date);
  const month = day.getUTCMonth();
  return months.has(month + 1) ? date + DAY_MS : Date.UTC(day.getUTCFullYear(), month + 1, 1);
}

function ticksOf({ times, isHourly }: Cron, day: LocalDay): number[] {
  const ticks = new Set<number>();
  for (const time of times) {
    const instants = day.instantsOf(time);
    const [first] = instants;
    if (isHourly) for (const instant of instants) ticks.add(instant);
    else ticks.add(first ?? day.change);
  }
  return [...ticks].sort((a, b) => a - b);
}

function knownZone(name: string): Zone {
  const zone = zoneOf(name);
  if (zone === undefined) throw new RangeError(`there is no time zone '${name}'`);
  return zone;
}
