/** Reads a page of metrics, as strictly as Prometheus does. */
import type { Member } from "../support/fleet/member.js";

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)/y;

/** The samples of a page, by name and labels as the page writes them. */
export class Page {
  readonly text: string;
  readonly samples = new Map<string, number>();
  /** The types of families. */
  readonly types = new Map<string, string>();

  /** @throws Error for a page that Prometheus would refuse, or would take for less than it says */
  constructor(text: string) {
    this.text = text;
    if (!text.endsWith("\n")) throw new Error("the last line has no end");
    let family = "";
    let helped = "";
    for (const line of text.split("\n")) {
      if (line === "") continue;
      const [, head, name = ""] = /^# (HELP|TYPE) (\S+)/.exec(line) ?? [];
      if (head === "HELP") helped = name;
      else if (head === "TYPE") {
        if (this.types.has(name)) throw new Error(`${name} has two parts`);
        if (helped !== name) throw new Error(`${name} has no help before its type`);
        this.types.set(name, line.split(" ")[3] ?? "");
        family = name;
      } else if (head === undefined) this.#sample(line, family);
    }
    this.#checkHistograms();
  }

  /** @throws Error if there is no such sample */
  value(series: string): number {
    const value = this.samples.get(series);
    if (value === undefined) throw new Error(`there is no ${series} in\n${this.text}`);
    return value;
  }

  /** A bucket counts the values of the buckets below, too, and the last bucket counts all. */
  #checkHistograms(): void {
    const last = new Map<string, { bound: number; count: number }>();
    for (const [series, count] of this.samples) {
      const [, name = "", labels = "", bound = ""] = /^(\w+)_bucket\{(.*?),?le="([^"]+)"\}$/.exec(series) ?? [];
      if (name === "" || this.types.get(name) !== "histogram") continue;
      const whole = labels === "" ? name : `${name}{${labels}}`;
      const before = last.get(whole) ?? { bound: -Infinity, count: 0 };
      const next = { bound: bound === "+Inf" ? Infinity : Number(bound), count };
      if (!(next.bound > before.bound) || count < before.count) throw new Error(`${series} is out of order`);
      last.set(whole, next);
    }
    for (const [series, { bound, count }] of last) {
      if (bound !== Infinity) throw new Error(`${series} has no bucket for all values`);
      const [, name = "", labels = ""] = /^(\w+)(.*)$/.exec(series) ?? [];
      if (this.samples.get(`${name}_count${labels}`) !== count) throw new Error(`${series} has another count`);
    }
  }

  #sample(line: string, family: string): void {
    const [, name = "", labels = "", text = ""] = SAMPLE.exec(line) ?? [];
    const known = name === family || name.replace(/_(?:bucket|sum|count)$/, "") === family;
    if (!known) throw new Error(`${line} does not stand below its family, but below ${family}`);
    LABEL.lastIndex = 0;
    while (LABEL.lastIndex < labels.length) if (!LABEL.test(labels)) throw new Error(`labels of ${line}`);
    const series = labels === "" ? name : `${name}{${labels}}`;
    if (this.samples.has(series)) throw new Error(`${series} stands twice`);
    const value = text === "+Inf" ? Infinity : Number(text);
    if (Number.isNaN(value) && text !== "NaN" && text !== "Nan") throw new Error(`value of ${line}`);
    if (this.types.get(family) === "counter" && value < 0) throw new Error(`${line} is a counter below 0`);
    this.samples.set(series, value);
  }
}

/** The URL of a process's metrics, as its log says. */
export async function metricsOf(member: Member): Promise<string> {
  await member.process.waitForMessage("metrics listening");
  const said = member.process.lines.findLast(({ fields }) => fields["msg"] === "metrics listening");
  return `http://127.0.0.1:${String(said?.fields["port"])}/metrics`;
}

export async function scrape(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Page> {
  const answer = await fetch(url, { headers });
  if (answer.status !== 200) throw new Error(`${url}: ${answer.status}`);
  return new Page(await answer.text());
}
