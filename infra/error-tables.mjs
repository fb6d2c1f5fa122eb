/**
 * The tables of docs/errors.md: the codes with their meanings, and the fixed texts. The meaning of
 * a code is the first sentence of its comment in shared/errors.ts.
 */
import { readScript } from "./checks/files.mjs";
import { firstSentence } from "./test-table.mjs";

/** @import { ErrorCode, ErrorKind } from "../shared/errors.js" */

const SOURCE = "shared/errors.ts";

/** The names of gRPC's statuses (https://grpc.github.io/grpc/core/md_doc_statuscodes.html). */
const GRPC = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
];

/**
 * @param {string} root
 * @param {Readonly<Record<string, ErrorKind>>} kinds
 * @param {typeof import("../shared/grpc-status.js").grpcStatusOf} grpcStatusOf
 * @returns {string} Markdown
 */
export function codeTable(root, kinds, grpcStatusOf) {
  const meanings = meaningsIn(root);
  const rows = Object.entries(kinds).map(([code, { status, retry }]) => {
    const grpc = GRPC[grpcStatusOf(/** @type {ErrorCode} */ (code))];
    return `| \`${code}\` | ${status} | ${grpc} | ${retry ? "yes" : "no"} | ${cell(meanings.get(code) ?? "")} |`;
  });
  return ["| code | HTTP | gRPC | retry | meaning |", "| --- | --- | --- | --- | --- |", ...rows].join("\n");
}

/**
 * @param {Readonly<Record<string, ErrorKind>>} kinds
 * @returns {string} Markdown
 */
export function textTable(kinds) {
  const rows = Object.entries(kinds).flatMap(([code, { texts = {} }]) =>
    Object.values(texts).map((text) => `| \`${cell(text)}\` | \`${code}\` |`),
  );
  return ["| text | code |", "| --- | --- |", ...rows].join("\n");
}

/**
 * @param {string} root
 * @returns {Map<string, string>} a sentence for each code that has a comment
 */
function meaningsIn(root) {
  const { text, comments } = readScript(root, SOURCE);
  /** @type {Map<string, string>} */
  const found = new Map();
  for (const { value, end } of comments) {
    const code = /^\n {2}(\w+): \{/.exec(text.slice(end))?.[1];
    if (code !== undefined) found.set(code, firstSentence(value));
  }
  return found;
}

const cell = (/** @type {string} */ text) => text.replaceAll("|", "\\|");
