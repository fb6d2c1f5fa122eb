/** The rules, alerts and dashboards of infra/observe name metrics that a process has. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { families } from "#shared/metrics/families.js";
import { dashboardFiles } from "../../infra/observe/dashboards.mjs";
import { root } from "../support/fleet/root.js";

interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly annotations?: { readonly summary: string; readonly runbook: string };
}

const folder = join(root, "infra/observe");
const read = (name: string) => readFileSync(join(folder, name), "utf8");
const rulesOf = (name: string) =>
  (parse(read(name)) as { readonly groups: readonly { readonly rules: readonly Rule[] }[] }).groups.flatMap(
    ({ rules }) => rules,
  );

const records = rulesOf("rules.yml");
const alerts = rulesOf("alerts.yml");
const queries = Object.values(dashboardFiles()).flatMap((text) =>
  (
    JSON.parse(text) as { readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[] }
  ).panels
    .flatMap(({ targets }) => targets)
    .map(({ expr }) => expr),
);

/** The names of series in an expression of PromQL. */
const namesIn = (expr: string) => expr.match(/\b(?:baton|nv)_\w+|\bbaton:[\w:]+|\bup\b/g) ?? [];

/** Series of Prometheus itself, and a label of all. */
const given = ["up", "baton_role"];
const known = new Set<string>([...given, ...records.map(({ record = "" }) => record)]);
for (const [name, { type }] of Object.entries(families)) {
  for (const end of type === "histogram" ? ["_bucket", "_sum", "_count"] : [""]) known.add(`${name}${end}`);
}

it.each([...records, ...alerts].map(({ record, alert, expr }) => [record ?? alert ?? "", expr]))(
  "%s names series that are there",
  (_, expr) => {
    expect(namesIn(expr)).not.toEqual([]);
    expect(namesIn(expr).filter((name) => !known.has(name))).toEqual([]);
  },
);

it("the dashboards name series that are there, and each rule has a reader", () => {
  expect(queries.length).toBeGreaterThan(35);
  expect(queries.flatMap(namesIn).filter((name) => !known.has(name))).toEqual([]);
  const asked = new Set([...queries, ...alerts.map(({ expr }) => expr)].flatMap(namesIn));
  expect(records.map(({ record = "" }) => record).filter((name) => !asked.has(name))).toEqual([]);
});

it("the dashboards are those of the list", () => {
  const written = readdirSync(join(folder, "dashboards")).map((name) => [name, read(`dashboards/${name}`)]);
  expect(Object.fromEntries(written)).toEqual(dashboardFiles());
});

it.each(alerts.map(({ alert = "", annotations }) => [alert, annotations]))("%s has a first step", (name, said) => {
  expect(said?.runbook).toBe(`docs/observe.md#${name.toLowerCase()}`);
  expect(readFileSync(join(root, "docs/observe.md"), "utf8")).toContain(`### ${name}\n`);
});
