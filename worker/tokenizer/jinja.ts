/**
 * The one place that uses `@huggingface/jinja`, with the globals that Transformers gives templates.
 * This file does not use the library's own `Template`, whose `raise_exception` looks like other
 * errors. The types of the library's parts stand here, because its own types do not resolve under
 * Node's module rules.
 */
import * as library from "@huggingface/jinja";

/** The error of a template's own `raise_exception`. */
export class TemplateRefusal extends Error {}

/** Renders a template with these variables. */
export type Render = (variables: Readonly<Record<string, unknown>>) => string;

interface Parts {
  readonly tokenize: (source: string, options: { lstrip_blocks: boolean; trim_blocks: boolean }) => unknown;
  readonly parse: (tokens: unknown) => unknown;
  readonly Environment: new () => { set(name: string, value: unknown): void };
  readonly Interpreter: new (environment: unknown) => { run(program: unknown): { readonly value: string } };
}

const { tokenize, parse, Environment, Interpreter } = library as unknown as Parts;

/** @throws Error if the template is unreadable */
export function openTemplate(source: string): Render {
  const program = parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true }));
  return (variables) => {
    const environment = new Environment();
    const all = { ...globals, ...Object.fromEntries(Object.entries(variables).filter(([name]) => !(name in globals))) };
    for (const [name, value] of Object.entries(all)) environment.set(name, value);
    return new Interpreter(environment).run(program).value;
  };
}

const globals: Readonly<Record<string, unknown>> = {
  true: true,
  false: false,
  none: null,
  True: true,
  False: false,
  None: null,
  range,
  strftime_now: (format: string) => strftime(new Date(), format),
  raise_exception(message: unknown): never {
    throw new TemplateRefusal(String(message));
  },
};

/** Python's `range`. */
function range(start: number, stop?: number, step = 1): number[] {
  const [from, to] = stop === undefined ? [0, start] : [start, stop];
  const length = Math.max(0, Math.ceil((to - from) / step));
  return Array.from({ length }, (_, i) => from + i * step);
}

const MONTHS = "January February March April May June July August September October November December".split(" ");
const DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");

/** The part of Python's `strftime` that templates use. Other directives stay as they are. */
export function strftime(time: Date, format: string): string {
  const two = (number: number): string => String(number).padStart(2, "0");
  const month = MONTHS[time.getMonth()] ?? "";
  const day = DAYS[time.getDay()] ?? "";
  const parts: Readonly<Record<string, string>> = {
    "%Y": String(time.getFullYear()),
    "%y": two(time.getFullYear() % 100),
    "%m": two(time.getMonth() + 1),
    "%B": month,
    "%b": month.slice(0, 3),
    "%d": two(time.getDate()),
    "%A": day,
    "%a": day.slice(0, 3),
    "%H": two(time.getHours()),
    "%M": two(time.getMinutes()),
    "%S": two(time.getSeconds()),
    "%%": "%",
  };
  return format.replace(/%[A-Za-z%]/g, (directive) => parts[directive] ?? directive);
}
