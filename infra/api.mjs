/**
 * `npm run -s api -- --list`: every method and path of the HTTP API, with the right that a caller
 * needs and the line that declares the endpoint. Without `--list` it prints the OpenAPI document.
 * It needs a build.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync, Visitor } from "oxc-parser";
import { isTest, lineAt, listFiles } from "./checks/files.mjs";

const root = join(import.meta.dirname, "..");
// The import names are computed, because type checks run before the files of the build exist.
const dist = new URL("../dist/gateway/", import.meta.url).href;
/** @type {typeof import("../gateway/endpoints.js")} */
const { endpoints } = await import(`${dist}endpoints.js`);
/** @type {typeof import("../gateway/api/endpoint/openapi.js")} */
const { openApi } = await import(`${dist}api/endpoint/openapi.js`);

if (process.argv.includes("--list")) {
  const placesOf = sentences();
  for (const { method, path, right = "-", does } of endpoints) {
    const places = placesOf(does);
    if (places.length !== 1) throw new Error(`"${does}" has ${places.length} places: ${places.join(", ")}`);
    console.log([method.padEnd(6), path, right, places[0]].join("  "));
  }
} else {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  console.log(JSON.stringify(openApi(endpoints, version), undefined, 2));
}

/**
 * The sentence that says what an endpoint does stands once in the sources, beside the method and
 * the path: as a text, or as a template if a function declares several endpoints.
 *
 * @returns {(does: string) => readonly string[]} the lines that may hold a sentence, as `file:line`
 */
function sentences() {
  /** @type {{ matches: (does: string) => boolean, place: string }[]} */
  const found = [];
  for (const file of listFiles(join(root, "gateway"))) {
    if (!file.endsWith(".ts") || isTest(file)) continue;
    const text = readFileSync(join(root, "gateway", file), "utf8");
    const add = (/** @type {number} */ at, /** @type {(does: string) => boolean} */ matches) =>
      found.push({ matches, place: `gateway/${file}:${lineAt(text, at)}` });
    new Visitor({
      Literal({ start, value }) {
        if (typeof value === "string") add(start, (does) => does === value);
      },
      TemplateLiteral({ start, quasis }) {
        const [first = "", last = ""] = [quasis.at(0)?.value.raw, quasis.at(-1)?.value.raw];
        if (/^[A-Z]/.test(first)) add(start, (does) => does.startsWith(first) && does.endsWith(last));
      },
    }).visit(parseSync(file, text).program);
  }
  return (does) => found.filter(({ matches }) => matches(does)).map(({ place }) => place);
}
