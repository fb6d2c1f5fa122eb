/** The tables of docs/configuration.md: how Baton treats each field of a model's configuration. */

/** @import { Verdict, Verdicts } from "../worker/models/validate/verdicts.js" */

/**
 * @param {Verdicts} verdicts
 * @returns {string} Markdown: a row for each field
 */
export function fieldTable(verdicts) {
  return tableOf("field", rowsOf(verdicts, ""));
}

/**
 * @param {Readonly<Record<string, Verdict>>} verdicts
 * @returns {string} Markdown: a row for each key of `parameters`
 */
export function parameterTable(verdicts) {
  return tableOf(
    "key",
    Object.entries(verdicts).map(([key, verdict]) => rowOf(key.endsWith(":") ? `${key}<tensor>` : key, verdict)),
  );
}

/**
 * @param {Verdicts} verdicts
 * @param {string} path of the message that has these fields
 * @returns {string[]}
 */
function rowsOf(verdicts, path) {
  return Object.entries(verdicts).flatMap(([field, verdict]) =>
    isVerdict(verdict) ? [rowOf(path + field, verdict)] : rowsOf(verdict, `${path}${field}.`),
  );
}

/**
 * @param {Verdict | Verdicts} one
 * @returns {one is Verdict}
 */
const isVerdict = (one) => "decision" in one && "kind" in one.decision;

/**
 * @param {string} name
 * @param {Verdict} verdict
 */
function rowOf(name, { decision }) {
  const { kind } = decision;
  const why = "why" in decision ? (decision.why ?? "") : "";
  // A field with allowed values is obeyed, and any other value is refused.
  const treated = kind === "refused" && decision.allowed !== undefined ? "obeyed" : kind;
  return `| \`${name}\` | ${treated} | ${why.replaceAll("|", "\\|")} |`;
}

/** @type {(head: string, rows: readonly string[]) => string} */
const tableOf = (head, rows) => [`| ${head} | Baton | why |`, "| --- | --- | --- |", ...rows].join("\n");
