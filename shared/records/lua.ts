/**
 * The Lua half of the records. A script names the fields of a record, and the loader puts patterns
 * and concatenations in the place of the names, so Redis runs no more than before:
 *
 *     script                                    Redis runs
 *     text:match(PATTERN.due(made))             text:match('^%d+|(%d+)$')
 *     TEXT.due{at = at, made = made}            at .. '|' .. made
 *     WRITTEN.load{items = i, bytes = b}        i .. ' ' .. b, of texts even for numbers
 *     HEAD.brief{bytes = bytes, step = step}    bytes .. '|' .. step, the first fields alone
 *     TEXT.entry{facts, from = at}              facts .. '|' .. at, `facts` being all fields before
 *     LIST.parked{facts = a, frame = b, terms = c}    {a, b, c}
 *     LIST.parked(list).frame                   list[2]
 *     -- record brief: unpackBrief packBrief    functions from the text to a table, and back
 *
 * `unpackX` returns nil for any other text, and `newX` returns the table of a new record. Fields
 * come in the order of the declaration, so that a reader sees the order of the text.
 */
import * as counts from "./counts.js";
import * as jobs from "./jobs.js";
import * as reports from "./reports.js";
import * as requests from "./requests.js";
import * as sequences from "./sequence.js";
import * as usages from "./usage.js";
import * as webhooks from "./webhooks.js";
import type { Fields, ListRecord, TextRecord } from "./record.js";

/** A list has no pattern. */
type Declared = Pick<ListRecord<Fields>, "places"> & Partial<Pick<TextRecord<Fields>, "pattern">>;

/** Every record that a script reads or writes. */
const records: Readonly<Record<string, Declared>> = {
  ...counts,
  ...jobs,
  ...reports,
  ...requests,
  ...sequences,
  ...usages,
  ...webhooks,
};

const FUNCTIONS = /^-- record (\w+):((?: \w+)+)\n/gm;
const PATTERN = /\bPATTERN\.(\w+)\(([^()]*)\)/g;
const ITEM = /\bLIST\.(\w+)\(([\w[\]]+)\)\.(\w+)/g;
const TEXT = /\b(TEXT|HEAD|WRITTEN|LIST)\.(\w+)\{/;
const LEFT = /\b(?:PATTERN|TEXT|HEAD|WRITTEN|LIST)\.\S*|^-- record \w+:.*/m;

/**
 * @param source of a script, with its included files
 * @throws TypeError if the script names a record or a field that is not declared
 */
export function resolveRecords(source: string): string {
  let resolved = source
    .replaceAll(FUNCTIONS, (_, name: string, functions: string) =>
      functions
        .trim()
        .split(" ")
        .map((made) => functionOf(name, made))
        .join("\n"),
    )
    .replaceAll(ITEM, (_, name: string, list: string, field: string) => `${list}[${placeOf(name, field)}]`)
    .replaceAll(PATTERN, (_, name: string, fields: string) => quoted(patternOf(name, namesIn(fields))));
  for (let found = TEXT.exec(resolved); found !== null; found = TEXT.exec(resolved)) {
    const [begin, form, name = ""] = found;
    const { items, end } = itemsAt(resolved, found.index + begin.length);
    const made = form === "LIST" ? listOf(name, items) : textOf(name, items, form as TextForm);
    resolved = resolved.slice(0, found.index) + made + resolved.slice(end);
  }
  const [left] = LEFT.exec(resolved) ?? [];
  if (left !== undefined) throw new TypeError(`${left} is no form of a record`);
  return resolved;
}

function isList({ pattern }: Declared): boolean {
  return pattern === undefined;
}

function declared(name: string): Declared {
  const found = records[name];
  if (found === undefined) throw new TypeError(`no record '${name}' is declared`);
  return found;
}

const namesIn = (fields: string) => fields.split(",").map((field) => field.trim());

/** Captures come in the order of the text, so the names come in that order, too. */
function patternOf(name: string, fields: readonly string[]): string {
  const found = declared(name);
  const known = found.places.map((place) => place.name).filter((field) => fields.includes(field));
  if (found.pattern === undefined || known.join() !== fields.join()) {
    throw new TypeError(`no text '${name}' has the fields ${fields.join(", ")} in this order`);
  }
  return found.pattern(fields);
}

/** The place of a field in a list, from 1. */
function placeOf(name: string, field: string): number {
  const found = declared(name);
  const place = found.places.findIndex((one) => one.name === field);
  if (!isList(found) || place === -1) throw new TypeError(`no list '${name}' has a field ${field}`);
  return place + 1;
}

interface Item {
  /** Undefined for the text of all fields before. */
  readonly name: string | undefined;
  readonly value: string;
}

/** The form of a whole text, of its first fields, and of a whole text whose values are texts. */
type TextForm = "TEXT" | "HEAD" | "WRITTEN";

function textOf(name: string, items: readonly Item[], form: TextForm): string {
  const found = declared(name);
  if (isList(found)) throw new TypeError(`record '${name}' is a list`);
  const { places } = found;
  const hasHead = items[0]?.name === undefined;
  const first = hasHead ? places.length - items.length + 1 : 0;
  const used = places.slice(first, form === "HEAD" ? items.length : undefined);
  const named = hasHead ? items.slice(1) : items;
  checkNames(name, named, used);
  const values = items.map(({ value }) => (/\b(?:and|or)\b|[<>]|[=~]=/.test(value) ? `(${value})` : value));
  const befores = [...(hasHead ? [""] : []), ...used.map(({ before }) => before)];
  if (form !== "WRITTEN" && used.some(({ field }) => field.isNumber)) {
    const forms = used.map(({ field, before }) => before + formatOf(field.isNumber));
    return `string.format(${quoted((hasHead ? "%s" : "") + forms.join(""))}, ${values.join(", ")})`;
  }
  return values.map((value, i) => (befores[i] === "" ? value : `${quoted(befores[i] ?? "")} .. ${value}`)).join(" .. ");
}

function listOf(name: string, items: readonly Item[]): string {
  const found = declared(name);
  if (!isList(found)) throw new TypeError(`record '${name}' is a text`);
  checkNames(name, items, found.places);
  return `{${items.map(({ value }) => value).join(", ")}}`;
}

function checkNames(name: string, items: readonly Item[], places: Declared["places"]): void {
  const [given, known] = [items, places].map((all) => all.map((one) => one.name).join(", "));
  if (given !== known) throw new TypeError(`record '${name}' has the fields ${known}, not ${given}`);
}

/** A number may have more digits than the usual form of a Lua number shows. */
const formatOf = (isNumber: boolean) => (isNumber ? "%d" : "%s");

const TOKENS = /'[^']*'|[{}(),[\]]|[^'{}(),[\]]+/gy;

/** The items of the table constructor whose text begins at `from`; `end` is behind its brace. */
function itemsAt(source: string, from: number): { readonly items: readonly Item[]; readonly end: number } {
  const texts = [""];
  let depth = 0;
  TOKENS.lastIndex = from;
  for (let [token] = TOKENS.exec(source) ?? []; token !== undefined; [token] = TOKENS.exec(source) ?? []) {
    if (token === "}" && depth === 0) return { items: texts.map(itemOf), end: TOKENS.lastIndex };
    if ("{([".includes(token)) depth += 1;
    if ("})]".includes(token)) depth -= 1;
    if (token === "," && depth === 0) texts.push("");
    else texts.push((texts.pop() ?? "") + token);
  }
  throw new TypeError("a table constructor has no end");
}

function itemOf(text: string): Item {
  const [, name, value] = /^(\w+) = (.*)$/s.exec(text.trim()) ?? [];
  return { name, value: value ?? text.trim() };
}

function functionOf(name: string, made: string): string {
  const found = declared(name);
  const { places } = found;
  const names = places.map((place) => place.name);
  const title = name.charAt(0).toUpperCase() + name.slice(1);
  const table = (valueOf: (place: Declared["places"][number]) => string) =>
    `{${places.map((place) => `${place.name} = ${valueOf(place)}`).join(", ")}}`;
  const bodies: Record<string, () => string> = {
    [`unpack${title}(text)`]: () =>
      `local ${names.join(", ")} = text:match(${quoted(patternOf(name, names))})\n` +
      `  if not ${names[0]} then return nil end\n` +
      `  return ${table((place) => (place.field.isNumber ? `tonumber(${place.name})` : place.name))}`,
    [`pack${title}(r)`]: () => {
      const items = names.map((field) => ({ name: field, value: `r.${field}` }));
      return `return ${isList(found) ? listOf(name, items) : textOf(name, items, "TEXT")}`;
    },
    [`new${title}()`]: () => `return ${table(({ field }) => field.initial)}`,
  };
  const [head, body] = Object.entries(bodies).find(([signature]) => signature.startsWith(`${made}(`)) ?? [];
  if (head === undefined || body === undefined) throw new TypeError(`a record '${name}' has no function ${made}`);
  return `local function ${head}\n  ${body()}\nend\n`;
}

/** A text as a Lua literal. */
const quoted = (text: string) => `'${text.replaceAll("\n", "\\n")}'`;
