/** Reads the syntax of sources with oxc's parser, without running any. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "oxc-parser";
import { target } from "./files.mjs";

/**
 * @typedef {object} Module
 * @property {string} path
 * @property {string} text
 * @property {any} program the syntax tree
 * @property {string[]} imports the files whose code this file may run, without those of types alone
 */

/** A file that a process starts a thread with. */
const THREAD = /new URL\("(\.[^"]+\.js)", import\.meta\.url\)/g;

/** @type {Map<string, Module>} */
const read = new Map();

/**
 * @param {string} root
 * @param {string} path
 * @returns {Module}
 */
export function readModule(root, path) {
  const file = join(root, path);
  const known = read.get(file);
  if (known !== undefined) return known;
  const text = readFileSync(file, "utf8");
  const { program, module } = parseSync(path, text);
  const requests = [
    ...module.staticImports
      .filter(({ entries }) => entries.length === 0 || entries.some(({ isType }) => !isType))
      .map(({ moduleRequest }) => moduleRequest.value),
    ...module.staticExports.flatMap(({ entries }) =>
      entries.filter(({ isType }) => !isType).map(({ moduleRequest }) => moduleRequest?.value),
    ),
    ...module.dynamicImports.map(({ moduleRequest }) => text.slice(moduleRequest.start + 1, moduleRequest.end - 1)),
    ...[...text.matchAll(THREAD)].map(([, request]) => request),
  ];
  const imports = requests.map((request) => target(path, request)).filter((found) => found !== undefined);
  const made = { path, text, program, imports };
  read.set(file, made);
  return made;
}

/**
 * @param {any} node
 * @param {(node: any) => void} visit is called for each node of the tree
 */
export function walk(node, visit) {
  if (node === null || typeof node !== "object") return;
  if (typeof node.type === "string") visit(node);
  for (const child of Object.values(node)) walk(child, visit);
}

/**
 * The constants of a file that are texts, lists and objects of these, by name.
 *
 * @param {string} root
 * @param {string} path
 * @returns {Record<string, any>}
 */
export function constantsOf(root, path) {
  /** @type {Record<string, any>} */
  const constants = {};
  for (const statement of readModule(root, path).program.body) {
    const declaration = statement.declaration ?? statement;
    for (const { id, init } of declaration.declarations ?? []) constants[id.name] = valueOf(init, constants);
  }
  return constants;
}

/**
 * @param {any} node
 * @param {Record<string, any>} known
 * @returns {any}
 */
function valueOf(node, known) {
  switch (node?.type) {
    case "Literal":
      return node.value;
    case "Identifier":
      return known[node.name];
    case "TSAsExpression":
      return valueOf(node.expression, known);
    case "TemplateLiteral":
      return node.quasis
        .map((/** @type {any} */ { value }, /** @type {number} */ i) =>
          [value.cooked, valueOf(node.expressions[i], known)].join(""),
        )
        .join("");
    case "ArrayExpression":
      return node.elements.flatMap((/** @type {any} */ one) =>
        one.type === "SpreadElement" ? valueOf(one.argument, known) : [valueOf(one, known)],
      );
    case "ObjectExpression":
      return Object.fromEntries(
        node.properties.map((/** @type {any} */ property) => {
          const { key, value } = property;
          return [key.name ?? key.value, valueOf(value, known)];
        }),
      );
    default:
      return undefined;
  }
}
