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
    for (const line of text.split("\n")) {
      if (line === "") continue;
      const [, head, name = ""] = /^# (HELP|TYPE) (\S+)/.exec(line) ?? [];
      if (head === "TYPE") {
        if (this.types.has(name)) throw new Error(`${name} has two parts`);
        this.types.set(name, line.split(" ")[3] ?? "");
        family = name;
      } else if (head === undefined) this.#sample(line, family);
    }
  }

  /** @throws Error if there is no such sample */
  value(series: string): number {
    const value = this.samples.get(series);
    if (value === undefined) throw new Error(`there is no ${series} in\n${this.text}`);
    return value;
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
