/** The tables of docs/metrics.md: the families of metrics, from their declarations. */

/** @import { Family } from "../shared/metrics/families.js" */

/**
 * @param {Readonly<Record<string, Readonly<Record<string, Family>>>>} sections
 * @returns {string} Markdown: a heading and a table for each section
 */
export function metricTables(sections) {
  return Object.entries(sections)
    .map(([title, families]) => `## ${title}\n\n${tableOf(families)}`)
    .join("\n\n");
}

/** @param {Readonly<Record<string, Family>>} families */
function tableOf(families) {
  const rows = Object.entries(families).map(([name, { type, labels, help }]) => {
    const shown = labels.map((label) => `\`${label}\``).join(", ");
    return `| \`${name}\` | ${type} | ${shown} | ${help.replaceAll("|", "\\|")} |`;
  });
  return ["| name | type | labels | meaning |", "| --- | --- | --- | --- |", ...rows].join("\n");
}
