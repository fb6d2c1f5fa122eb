/**
 * The table of test files in test/README.md. A file's row has the first sentence of the file's
 * opening comment, or else the titles at the top level.
 */
import { parseSync, Visitor } from "oxc-parser";
import { isTest, listFiles, readScript } from "./checks/files.mjs";

/** Most titles in a row; a longer row would find no reader. */
const MOST_TITLES = 4;

/**
 * @param {string} root
 * @returns {string} Markdown
 */
export function testTable(root) {
  const rows = listFiles(root)
    .filter(isTest)
    .map((path) => {
      const command = path.startsWith("test/faults/") ? "npm run test:faults" : "npm test";
      return `| \`${path}\` | ${promisesOf(root, path).replaceAll("|", "\\|")} | \`${command}\` |`;
    });
  return ["| file | promises | command |", "| --- | --- | --- |", ...rows].join("\n");
}

/**
 * @param {string} root
 * @param {string} path
 */
function promisesOf(root, path) {
  const { text, comments } = readScript(root, path);
  const [opening] = comments;
  if (opening?.start === 0) return firstSentence(opening.value);
  const all = titles(path, text);
  const shown = all.slice(0, MOST_TITLES).join("; ");
  return all.length > MOST_TITLES ? `${shown}; and ${all.length - MOST_TITLES} more` : shown;
}

/** @param {string} comment the text between its marks */
export function firstSentence(comment) {
  const plain = comment
    .replaceAll(/^\s*\* ?/gm, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
  return /^.*?[.:](?= [A-Z]|$)/.exec(plain)?.[0] ?? plain;
}

/**
 * @param {string} path
 * @param {string} text
 * @returns {string[]} of the outermost suites and tests
 */
function titles(path, text) {
  /** @type {string[]} */
  const found = [];
  let endOfLast = 0;
  const visitor = new Visitor({
    CallExpression({ callee, arguments: [title], start, end }) {
      if (start < endOfLast || !/^(describe|it|test)\b/.test(text.slice(callee.start, callee.end))) return;
      if (title?.type !== "Literal" && title?.type !== "TemplateLiteral") return;
      const plain = text
        .slice(title.start + 1, title.end - 1)
        .replaceAll(/\$\{.*?\}|%\w|\\/g, "")
        .trim();
      if (plain === "") return; // the name comes from the cases, so the row has the inner titles
      endOfLast = end;
      found.push(plain);
    },
  });
  visitor.visit(parseSync(path, text).program);
  return found;
}
