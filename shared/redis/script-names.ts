/**
 * The names by which a script and its wrapper speak of the script's keys and arguments. The head of
 * the script and the wrapper both list the names, in order; a difference is an error at load time.
 * Redis passes arrays, so the loader puts numbers in the place of the names:
 *
 *     head                   code                     Redis runs
 *     KEYS.load              KEYS.load                KEYS[1]
 *     ARGV.group             ARGV.group               ARGV[1]
 *     ARGV.lanes[]           ARGV.lanes[i].pin        ARGV[2 * i + 1]
 *       .tag                 #ARGV.lanes              ((#ARGV - 1) / 2)
 *       .pin                 ARGV.lanes(at).pin       ARGV[at + 1]
 *                            ARGV.lanes.FIRST         2, the position of the first lane's tag
 *                            ARGV.lanes.WIDTH         2, the number of a lane's values
 *
 * Single names come first, and lists after them. A list without fields has a single value for each
 * item. A list that follows another list begins at a place that the script works out from FIRST and
 * WIDTH of the first, and only `(at)` reads it. A last field `.records...` stands for the number of
 * further values and then these values; `ARGV.records(at)` reads them, and WIDTH does not count
 * them.
 */
import type { Arg } from "./transaction.js";

/** A name, or a list with the names of its fields; without fields an item is a single value. */
export type Names = readonly (string | Readonly<Record<string, readonly string[]>>)[];

type ListNames<S extends Names> =
  Extract<S[number], object> extends infer L ? (L extends unknown ? keyof L : never) : never;
type FieldsOf<S extends Names, L> = Extract<S[number], Record<L & string, readonly string[]>>[L & string];
type Row<F extends string, Value> = {
  readonly [N in F as N extends `${infer Bare}...` ? Bare : N]: N extends `${string}...` ? readonly Value[] : Value;
};

/** The values of a call, by their names. */
export type Named<S extends Names, Value> = { readonly [N in Extract<S[number], string>]: Value } & {
  readonly [L in ListNames<S>]: FieldsOf<S, L> extends readonly []
    ? readonly Value[]
    : readonly Row<FieldsOf<S, L>[number], Value>[];
};

/** The names of KEYS and of ARGV. */
export interface Signature {
  readonly KEYS: Names;
  readonly ARGV: Names;
}

interface Part {
  readonly name: string;
  /** Undefined for a single name. */
  readonly fields: readonly string[] | undefined;
  readonly width: number;
  /** Position of the first value; undefined behind another list. */
  readonly first: number | undefined;
}

type Values = Readonly<Record<string, unknown>>;

/** @returns a function that puts the values of a call in the order of their names */
export function flattener<Value extends Arg>(names: Names): (values: Values) => Value[] {
  const adders = names.flatMap((entry) =>
    typeof entry === "string" ? adder(entry) : Object.entries(entry).map(([list, fields]) => listAdder(list, fields)),
  );
  return (values) => {
    const flat: Value[] = [];
    for (const add of adders) add(flat, values);
    return flat;
  };
}

type Adder = (flat: unknown[], values: Values) => void;

function adder(name: string): Adder {
  if (!name.endsWith("...")) return (flat, values) => void flat.push(values[name]);
  const bare = name.slice(0, -3);
  return (flat, values) => {
    const rest = values[bare] as readonly unknown[];
    flat.push(rest.length, ...rest);
  };
}

function listAdder(list: string, fields: readonly string[]): Adder {
  if (fields.length === 0) return (flat, values) => void flat.push(...(values[list] as readonly unknown[]));
  const adders = fields.map(adder);
  return (flat, values) => {
    for (const row of values[list] as readonly Values[]) for (const add of adders) add(flat, row);
  };
}

/**
 * @param source of a script, with its included files
 * @throws TypeError if the head lists other names, or if the code uses a name that is not listed
 */
export function resolveNames(source: string, signature: Signature): string {
  const listed = namesOfHead(source);
  for (const array of ["KEYS", "ARGV"] as const) {
    const [inHead, inWrapper] = [listed[array], signature[array]].map((names) => textOf(names));
    if (inHead !== inWrapper) throw new TypeError(`the head lists ${array} '${inHead}', the wrapper '${inWrapper}'`);
  }
  const parts = { KEYS: partsOf(signature.KEYS), ARGV: partsOf(signature.ARGV) };
  const constant = (text: string, array: "KEYS" | "ARGV", name: string, which: string) => {
    const { fields, first, width } = parts[array].find((part) => part.name === name) ?? {};
    if (fields === undefined) return text;
    return String((which === "FIRST" ? first : width) ?? text);
  };
  const use = (text: string, count: string, array: "KEYS" | "ARGV", name: string, ...where: (string | undefined)[]) => {
    const [index, at, field] = where;
    const isList = parts[array].some((part) => part.name === name && part.fields !== undefined);
    if (count === "" || !isList || (index ?? at) !== undefined) {
      return count + (placeOf(parts[array], { name, index, at, field }, array) ?? text);
    }
    return countOf(parts[array], name, array) ?? text;
  };
  const resolveLine = (line: string) => {
    // Few lines have a name, and a process loads thousands of lines at its start.
    if (!(line.includes("KEYS") || line.includes("ARGV")) || /^\s*--/.test(line)) return line;
    const resolved = line.replaceAll(CONSTANTS, constant).replaceAll(USES, use);
    const [left] = /\b(?:KEYS|ARGV)(?:\.|\[[^\]]*\]\.\w)\S*/.exec(resolved) ?? [];
    if (left !== undefined) throw new TypeError(`${left} is not in the head, or cannot be read in this way`);
    return resolved;
  };
  return source.split("\n").map(resolveLine).join("\n");
}

const CONSTANTS = /\b(KEYS|ARGV)\.(\w+)\.(FIRST|WIDTH)\b/g;
/** A use of a name: the sign of its length, the array, the name, index, place, and field. */
const USES = /(#?)\b(KEYS|ARGV)\.(\w+)(?:(?:\[([^[\]]*)\]|\(([^()]*)\))(?:\.(\w+))?)?/g;

interface Use {
  readonly name: string;
  readonly index: string | undefined;
  readonly at: string | undefined;
  readonly field: string | undefined;
}

function placeOf(parts: readonly Part[], { name, index, at, field }: Use, array: string): string | undefined {
  const part = parts.find((one) => one.name === name);
  if (part === undefined)
    return isRest(parts, name) && at !== undefined && field === undefined ? `${array}[${at}]` : undefined;
  const { fields, width, first } = part;
  if (fields === undefined) return index === undefined && at === undefined ? `${array}[${first}]` : undefined;
  const offset = field === undefined ? 0 : fields.findIndex((one) => one.replace("...", "") === field);
  if (offset < 0 || fields.length > 0 !== (field !== undefined)) return undefined;
  if (at !== undefined) return `${array}[${sum(at, offset)}]`;
  if (index === undefined || first === undefined || hasRest(fields)) return undefined;
  if (/^\d+$/.test(index)) return `${array}[${first + offset + width * (Number(index) - 1)}]`;
  const item = /^\w+$/.test(index) || width === 1 ? index : `(${index})`;
  return `${array}[${sum(width === 1 ? item : `${width} * ${item}`, first + offset - width)}]`;
}

/** The last list goes to the end, so the number of values shows how many items it has. */
function countOf(parts: readonly Part[], name: string, array: string): string | undefined {
  const last = parts.at(-1);
  if (last?.name !== name || last.first === undefined || hasRest(last.fields ?? [])) return undefined;
  const { first, width } = last;
  const values = first === 1 ? `#${array}` : `(#${array} - ${first - 1})`;
  return width === 1 ? values : `(${values} / ${width})`;
}

/** Whether a field `name...` stands for values of this name. */
function isRest(parts: readonly Part[], name: string): boolean {
  return parts.some(({ fields }) => fields?.includes(`${name}...`));
}

function sum(expression: string, offset: number): string {
  if (offset === 0) return expression;
  return `${expression} ${offset > 0 ? "+" : "-"} ${Math.abs(offset)}`;
}

function hasRest(fields: readonly string[]): boolean {
  return fields.at(-1)?.endsWith("...") === true;
}

function partsOf(names: Names): Part[] {
  const parts: Part[] = [];
  let first: number | undefined = 1;
  for (const entry of names) {
    if (typeof entry === "string") {
      if (first === undefined) throw new TypeError(`'${entry}' comes behind a list`);
      parts.push({ name: entry, fields: undefined, width: 1, first });
      first += 1;
    } else {
      for (const [name, fields] of Object.entries(entry)) {
        parts.push({ name, fields, width: Math.max(fields.length, 1), first });
      }
      first = undefined;
    }
  }
  return parts;
}

/** Reads the lines of the head that list names. */
export function namesOfHead(source: string): Signature {
  const names: { KEYS: (string | Record<string, string[]>)[]; ARGV: (string | Record<string, string[]>)[] } = {
    KEYS: [],
    ARGV: [],
  };
  let fields: string[] | undefined;
  for (const line of source.split("\n").slice(1)) {
    if (!line.startsWith("--")) break;
    const [, array, name = "", list] = /^-- {3}(KEYS|ARGV)\.(\w+)(\[\])?(?: |$)/.exec(line) ?? [];
    const field = /^-- {5}\.(\w+(?:\.{3})?)(?: |$)/.exec(line)?.[1];
    if (field !== undefined) fields?.push(field);
    if (array !== "KEYS" && array !== "ARGV") continue;
    fields = list === undefined ? undefined : [];
    names[array].push(fields === undefined ? name : { [name]: fields });
  }
  return names;
}

function textOf(names: Names): string {
  const texts = names.flatMap((entry) =>
    typeof entry === "string" ? entry : Object.entries(entry).map(([name, fields]) => `${name}[${fields.join(" ")}]`),
  );
  return texts.join(" ");
}
