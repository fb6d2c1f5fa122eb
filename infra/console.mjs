/**
 * Builds the console into dist/console/: its page, and one script and one style whose names have a
 * hash of their content, so that browsers may keep them for good.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";

const root = join(import.meta.dirname, "..");
const source = join(root, "console");
const target = join(root, "dist/console");

const built = await rolldown({
  input: join(source, "main.tsx"),
  platform: "browser",
  tsconfig: join(source, "tsconfig.json"),
  resolve: { extensionAlias: { ".js": [".ts", ".tsx", ".js"] } },
  onLog(level, log) {
    if (level === "warn") throw new Error(log.message);
  },
});
const { output } = await built.generate({ format: "esm", minify: true, comments: false });
await built.close();
if (output.length !== 1) throw new Error("the console is not a single script");

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
const styles = readdirSync(join(source, "style"))
  .filter((name) => name.endsWith(".css"))
  .toSorted();
const script = write("js", output[0].code);
const ofCharts = readFileSync(join(root, "node_modules/uplot/dist/uPlot.min.css"), "utf8");
const own = styles.map((name) => readFileSync(join(source, "style", name), "utf8"));
const style = write("css", [ofCharts, ...own].join("\n"));
const page = readFileSync(join(source, "index.html"), "utf8");
writeFileSync(join(target, "index.html"), page.replace("main.js", script).replace("style.css", style));

/**
 * @param {string} ending
 * @param {string} text
 * @returns {string} the name of the file
 */
function write(ending, text) {
  const name = `console.${createHash("sha256").update(text).digest("hex").slice(0, 12)}.${ending}`;
  writeFileSync(join(target, name), text);
  return name;
}
