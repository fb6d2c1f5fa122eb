/**
 * `npm run console:check -- [names]`: starts a fleet, opens its console in Debian's chromium, and
 * prints each figure with its bound. The exit code is 1 if a figure misses its bound. The names
 * choose checks, such as `rows`; without a name all run.
 */
import { hasBrowser } from "../visitor.js";
import { line, none, type Figure } from "./figures.js";
import { checkFiles } from "./files.js";
import { checkPages } from "./pages.js";
import { checkPaint } from "./paint.js";
import { checkRest } from "./rest.js";
import { checkRows } from "./rows.js";
import { Site } from "./site.js";

if (!hasBrowser) throw new Error("console:check needs Debian's chromium");

/** The list of thousands comes last, because it would slow down all other pages. */
const checks = { files: checkFiles, pages: checkPages, rest: checkRest, paint: checkPaint, rows: checkRows };
const chosen = process.argv.slice(2);

const site = await Site.open();
try {
  for (const [name, check] of Object.entries(checks)) {
    if (chosen.length === 0 || chosen.includes(name)) report(await check(site));
  }
  report([
    none(
      "requests to another origin",
      site.seen.flatMap(({ foreign }) => foreign),
    ),
    none(
      "errors and warnings in the browser's console",
      site.seen.flatMap(({ errors }) => errors),
    ),
  ]);
} finally {
  await site.close();
}

function report(figures: readonly Figure[]): void {
  for (const figure of figures) console.log(line(figure));
  if (figures.some(({ isMet }) => !isMet)) process.exitCode = 1;
}
