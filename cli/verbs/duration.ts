/** Durations as people write them: `250ms`, `5s`, `90m`, `1h30m`, `2d`. */
import { InvalidArgumentError } from "commander";

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * @returns whole milliseconds; a number without a unit is milliseconds, as in the protocol
 * @throws InvalidArgumentError
 */
export function duration(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  const parts = [...text.matchAll(/(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h|d)/g)];
  const units = parts.map(([, , unit = ""]) => unit);
  const isWhole = parts.map(([part]) => part).join("") === text;
  if (!isWhole || parts.length === 0 || new Set(units).size < units.length) {
    throw new InvalidArgumentError("It must be a duration such as 250ms, 5s, 90m or 1h30m.");
  }
  return Math.round(parts.reduce((sum, [, count, unit = ""]) => sum + Number(count) * (UNITS[unit] ?? 0), 0));
}

/**
 * Reads a limit in time: a duration from now, or a time, which the gateway checks.
 * @throws InvalidArgumentError for other text
 */
export function durationOrTime(text: string): number | string {
  return /^\d{4}-\d{2}-\d{2}[Tt ]/.test(text) ? text : duration(text);
}
