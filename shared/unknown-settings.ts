/**
 * Finds environment variables that look like settings of Baton but are not, so that Baton reports a
 * misspelt limit. This file imports no package, because `npm start` loads it, too.
 */
import { isIP } from "node:net";
import { otherNames, settingNames } from "./setting-names.js";

export interface UnknownSetting {
  readonly name: string;
  /** The setting with the most similar name. */
  readonly nearest: string;
}

/**
 * The words for a setting's unit. A name without such a word is less likely to mean a setting with
 * a unit: BATON_QUEUE_ITEMS means BATON_QUEUE_LIMIT, not BATON_QUEUE_BYTES.
 */
const UNITS = new Set(["BYTES", "MS"]);
const UNIT_COST = 1.25;
/** A missing or extra word costs less than another word in its place. */
const MISSING = 0.75;
/** A word counts as misspelt up to this share of differing letters. */
const MISSPELT = 0.4;
/** The shortest abbreviation of a word, in letters. */
const ABBREVIATED = 3;
/** This many differing letters cost as much as a whole word. */
const LETTERS_PER_WORD = 2;
/** Longer names are cut before the comparison, which takes the square of their length. */
const MOST_LETTERS = 64;

/**
 * The variables that Kubernetes sets in a pod for each Service of its namespace, if the Service's
 * name begins with `baton-`: the end of the variable's name, and a test of its value.
 */
const serviceLinks: readonly (readonly [name: RegExp, fits: (value: string) => boolean])[] = [
  [/_SERVICE_HOST$/, isAddress],
  [/_SERVICE_PORT(_[A-Z0-9_]+)?$/, isPort],
  [/_PORT(_\d+_(TCP|UDP|SCTP))?$/, isPortUrl],
  [/_PORT_\d+_(TCP|UDP|SCTP)_PROTO$/, (value) => /^(tcp|udp|sctp)$/.test(value)],
  [/_PORT_\d+_(TCP|UDP|SCTP)_PORT$/, isPort],
  [/_PORT_\d+_(TCP|UDP|SCTP)_ADDR$/, isAddress],
];

const known = new Set([...settingNames, ...otherNames]);

/** The variables that no process of Baton reads. An empty variable counts as absent. */
export function unknownSettings(env: NodeJS.ProcessEnv): UnknownSetting[] {
  return Object.entries(env)
    .filter(([name, value = ""]) => {
      if (!name.startsWith("BATON_") || value === "" || known.has(name)) return false;
      return !serviceLinks.some(([pattern, fits]) => pattern.test(name) && fits(value));
    })
    .map(([name]) => ({ name, nearest: nearestTo(name) }));
}

/**
 * All variables in a line; undefined if there are none. Leaves the values out, because they may be
 * secrets.
 */
export function describeUnknown(unknown: readonly UnknownSetting[]): string | undefined {
  if (unknown.length === 0) return undefined;
  const named = unknown.map(({ name, nearest }) => `${name} (did you mean ${nearest}?)`);
  return `no process of Baton reads ${named.join(", ")}`;
}

export function isStrict(env: NodeJS.ProcessEnv): boolean {
  return env["BATON_STRICT_SETTINGS"] === "true";
}

function nearestTo(name: string): string {
  const given = name.slice(0, MOST_LETTERS).toUpperCase();
  let nearest = { name: "", distance: Infinity };
  for (const setting of settingNames) {
    const distance = distanceOf(given, setting);
    if (distance < nearest.distance) nearest = { name: setting, distance };
  }
  return nearest.name;
}

/** The distance of two names: in words, or in letters if words were joined or cut. */
function distanceOf(given: string, setting: string): number {
  const byWords = edits(given.split("_"), setting.split("_"), (word) => MISSING * costOf(word), changeOf);
  return Math.min(byWords, letterEdits(given, setting) / LETTERS_PER_WORD);
}

function costOf(word: string): number {
  return UNITS.has(word) ? UNIT_COST : 1;
}

/** The cost of a word in place of another. */
function changeOf(one: string, other: string): number {
  const [short = "", long = ""] = [one, other].sort((a, b) => a.length - b.length);
  if (short.length >= ABBREVIATED && long.startsWith(short) && one !== other) return MISSPELT / 2;
  const share = letterEdits(one, other) / Math.max(one.length, other.length, 1);
  return share <= MISSPELT ? share : Math.max(costOf(one), costOf(other));
}

function letterEdits(one: string, other: string): number {
  return edits(
    Array.from(one),
    Array.from(other),
    () => 1,
    (a, b) => (a === b ? 0 : 1),
  );
}

/** The least cost of turning a list of texts into the other (Levenshtein's distance). */
function edits(
  from: readonly string[],
  to: readonly string[],
  costOf: (item: string) => number,
  changeOf: (one: string, other: string) => number,
): number {
  let above = [0];
  for (const item of to) above.push((above.at(-1) ?? 0) + costOf(item));
  for (const one of from) {
    const row = [(above[0] ?? 0) + costOf(one)];
    for (const [i, other] of to.entries()) {
      const removed = (above[i + 1] ?? 0) + costOf(one);
      const added = (row[i] ?? 0) + costOf(other);
      row.push(Math.min(removed, added, (above[i] ?? 0) + changeOf(one, other)));
    }
    above = row;
  }
  return above.at(-1) ?? 0;
}

function isAddress(value: string): boolean {
  return isIP(value) !== 0;
}

function isPort(value: string): boolean {
  return /^\d{1,5}$/.test(value);
}

/** For example `tcp://10.0.0.1:8000`. */
function isPortUrl(value: string): boolean {
  return /^(tcp|udp|sctp):\/\/[\w.:[\]-]+:\d{1,5}$/.test(value);
}
