/**
 * `node infra/checks/lines.mjs [path]`: counts lines of code by area, without comments, blank lines
 * and generated files. Tests are areas of their own.
 */
import { resolve } from "node:path";
import { codeLines, isScript, isTest, listFiles } from "./files.mjs";

const AREAS = ["gateway", "shared", "cli", "worker", "infra", "console"];

/** @param {string} path @returns {string | undefined} the area that a file counts in */
function areaOf(path) {
  const [top = ""] = path.split("/");
  if (isTest(path) || top === "test") return "tests";
  return AREAS.includes(top) ? top : undefined;
}

const root = resolve(process.argv[2] ?? ".");
/** @type {Map<string, { scripts: number, lua: number }>} */
const sums = new Map();
for (const path of listFiles(root)) {
  const area = areaOf(path);
  if (area === undefined || !(isScript(path) || path.endsWith(".lua"))) continue;
  if (path.includes("/generated/")) continue;
  const sum = sums.get(area) ?? { scripts: 0, lua: 0 };
  sum[path.endsWith(".lua") ? "lua" : "scripts"] += codeLines(root, path);
  sums.set(area, sum);
}
console.log("area       TypeScript     Lua     sum");
for (const [area, { scripts, lua }] of sums) {
  console.log(
    `${area.padEnd(9)}${[scripts, lua, scripts + lua].map((n) => String(n).padStart(n === scripts ? 12 : 8)).join("")}`,
  );
}
