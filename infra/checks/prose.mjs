/**
 * The prose of the tree: the words of comments and Markdown, without code. Leaves out decision
 * records that a reader takes as history.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isScript, isTest, lineAt, readScript } from "./files.mjs";
import { markerOf } from "./columns.mjs";

/** The last decision record from before the rates of `english.mjs`. */
const LAST_OLD_RECORD = 39;

/**
 * @typedef {"comments" | "tests" | "Markdown"} Group
 * @typedef {{ path: string, line: number, group: Group, text: string }} Passage a comment or a
 *   paragraph: `line` is its first line from 1, and `text` its text without code
 */

/**
 * @param {string} root
 * @param {string[]} files
 * @returns {Passage[]}
 */
export function readProse(root, files) {
  return files.flatMap((path) => {
    const group = groupOf(path);
    if (path.endsWith(".md")) return isOldRecord(path) ? [] : passages(path, group, paragraphs(root, path));
    if (isScript(path)) return passages(path, group, comments(root, path));
    const marker = markerOf(path);
    return marker === undefined ? [] : passages(path, group, markedLines(root, path, marker));
  });
}

/** @param {string} path @returns {Group} */
function groupOf(path) {
  if (path.endsWith(".md")) return "Markdown";
  return isTest(path) || path.startsWith("test/") ? "tests" : "comments";
}

/** @param {string} path */
function isOldRecord(path) {
  const number = /^infra\/decisions\/(\d+)-/.exec(path)?.[1];
  return number !== undefined && Number(number) <= LAST_OLD_RECORD;
}

/**
 * @param {string} path
 * @param {Group} group
 * @param {{ line: number, text: string }[]} found
 * @returns {Passage[]}
 */
function passages(path, group, found) {
  return found.map(({ line, text }) => ({ path, line, group, text: withoutCode(text) }));
}

/**
 * The comments of a script. Consecutive lines with `//` are a single comment.
 *
 * @param {string} root
 * @param {string} path
 */
function comments(root, path) {
  const { text, comments: found } = readScript(root, path);
  /** @type {{ line: number, text: string, end: number }[]} */
  const merged = [];
  for (const { type, value, start, end } of found) {
    const last = merged.at(-1);
    if (type === "Line" && last !== undefined && /^\n[ \t]*$/.test(text.slice(last.end, start))) {
      last.text += `\n${value}`;
      last.end = end;
    } else {
      merged.push({ line: lineAt(text, start), text: value.replace(/^[ \t]*\* ?/gm, ""), end });
    }
  }
  return merged.map(({ line, text: comment }) => ({ line, text: withoutTags(comment) }));
}

/** @param {string} comment a comment of JSDoc, whose types and names are code */
function withoutTags(comment) {
  return comment
    .replace(/@(?:type|typedef|satisfies|template|import)\b[^\n]*/g, "")
    .replace(/@(?:param|property)\s+(?:\{[^\n]*?\}\s+)?(?:\[[^\]]*\]|[\w.]+)/g, ".\n")
    .replace(/@returns?\s+(?:\{[^\n]*?\}(?=\s))?/g, ".\n")
    .replace(/@\w+/g, ".\n");
}

/**
 * @param {string} root
 * @param {string} path
 * @param {string} marker
 */
function markedLines(root, path, marker) {
  /** @type {{ line: number, text: string }[]} */
  const found = [];
  let isOpen = false;
  for (const [i, line] of readFileSync(join(root, path), "utf8").split("\n").entries()) {
    const trimmed = line.trimStart();
    const isComment = trimmed.startsWith(marker) && !trimmed.startsWith("#!");
    const words = trimmed.slice(marker.length);
    const last = found.at(-1);
    if (isComment && isOpen && last !== undefined) last.text += `\n${words}`;
    else if (isComment) found.push({ line: i + 1, text: words });
    isOpen = isComment;
  }
  return found;
}

/**
 * Paragraphs, items of lists and rows of tables, without fenced code.
 *
 * @param {string} root
 * @param {string} path
 */
function paragraphs(root, path) {
  const text = readFileSync(join(root, path), "utf8")
    .replace(/^( *)(```+|~~~+)[^\n]*\n[\s\S]*?\n *\2/gm, (block) => block.replace(/[^\n]/g, ""))
    .replace(/<!--[\s\S]*?-->/g, (block) => block.replace(/[^\n]/g, ""));
  /** @type {{ line: number, text: string }[]} */
  const found = [];
  let isOpen = false;
  for (const [i, line] of text.split("\n").entries()) {
    const isEmpty = line.trim() === "" || /^[\s|:-]*$/.test(line);
    const begins = /^\s*(?:[-*]\s|\d+\.\s|#|\|)/.test(line);
    const last = found.at(-1);
    if (isEmpty) isOpen = false;
    else if (isOpen && !begins && last !== undefined) last.text += `\n${line}`;
    else {
      found.push({ line: i + 1, text: line });
      isOpen = !/^\s*[#|]/.test(line);
    }
  }
  return found.map(({ line, text: paragraph }) => ({
    line,
    text: paragraph.replace(/\]\([^)]*\)/g, "]").replace(/<[^>]*>/g, " "),
  }));
}

/** @param {string} text */
function withoutCode(text) {
  return text
    .replace(/^ {4,}\S.*$/gm, " ")
    .replace(/\{@link\s+[^}]*\}/g, " X ")
    .replace(/`[^`]*`/g, " X ")
    .replace(/https?:\/\/\S+/g, " ")
    .replace(/\|/g, ".\n");
}
