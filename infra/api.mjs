/**
 * `npm run -s api -- --list`: every method and path of the HTTP API, with the right that a caller
 * needs and the line that declares it. Without `--list` it prints the OpenAPI document. It needs a
 * build.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { listFiles } from "./checks/files.mjs";

const root = join(import.meta.dirname, "..");
// The import names are computed, because type checks run before the files of the build exist.
const dist = new URL("../dist/gateway/", import.meta.url).href;
/** @type {typeof import("../gateway/endpoints.js")} */
const { endpoints } = await import(`${dist}endpoints.js`);
/** @type {typeof import("../gateway/api/openapi.js")} */
const { openApi } = await import(`${dist}api/openapi.js`);

if (process.argv.includes("--list")) {
  const lines = declaredLines();
  for (const { method, path, right = "-", does } of endpoints) {
    console.log([method.padEnd(6), path, right, lines.get(does) ?? "?"].join("  "));
  }
} else {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  console.log(JSON.stringify(openApi(endpoints, version), undefined, 2));
}

/**
 * Where each endpoint is declared, by the sentence that says what it does.
 *
 * @returns {Map<string, string>}
 */
function declaredLines() {
  const found = new Map();
  for (const path of listFiles(join(root, "gateway"))) {
    if (!path.endsWith(".ts") || path.endsWith(".test.ts")) continue;
    const lines = readFileSync(join(root, "gateway", path), "utf8").split("\n");
    for (const [i, line] of lines.entries()) {
      const [, text] = /\bdoes:\s*("(?:[^"\\]|\\.)*")/.exec(line) ?? /^\s*("(?:[^"\\]|\\.)*"),$/.exec(line) ?? [];
      if (text !== undefined) found.set(JSON.parse(text), `gateway/${path}:${i + 1}`);
    }
  }
  return found;
}
