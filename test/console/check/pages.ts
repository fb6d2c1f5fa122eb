/** How all pages look, and how they are used by keys alone. */
import { submitInBackground } from "../../support/streams/front-doors.js";
import { slowDown } from "../../support/streams/stored.js";
import { askFor } from "../../support/streams/ask.js";
import { charts, contrast, focus, motion } from "../looks.js";
import { begin } from "../steps.js";
import { tour } from "../tour.js";
import { cancelByKeys, findByKeys, forkByKeys, sendByKeys } from "../walk.js";
import { atLeast, none, type Figure } from "./figures.js";
import type { Site } from "./site.js";

const LEAST_CONTRAST = 4.5;
const MODEL = "gen-mha";
/** The walk ends before so many tokens have come over a slow line. */
const TOKENS = 1_900;

export async function checkPages(site: Site): Promise<readonly Figure[]> {
  const seen = await site.visit();
  const { page } = seen;
  const faults = { contrast: [] as string[], focus: [] as string[], motion: [] as string[], charts: [] as string[] };
  const counts = { pages: 0, stops: 0, charts: 0 };
  let lowest = Infinity;
  for await (const hash of tour(seen, site.more)) {
    const note = (kind: keyof typeof faults, found: readonly string[]) =>
      faults[kind].push(...found.map((fault) => `${hash}: ${fault}`));
    const stops = await focus(page);
    const shown = await charts(page);
    const read = await contrast(page);
    note("focus", stops.faults);
    note("charts", shown.faults);
    note("contrast", read.faults);
    note("motion", await motion(page));
    lowest = Math.min(lowest, read.lowest);
    counts.pages += 1;
    counts.stops += stops.count;
    counts.charts += shown.count;
  }
  return [
    {
      ...atLeast(`lowest contrast, ${counts.pages} pages, both themes`, lowest, LEAST_CONTRAST),
      faults: faults.contrast,
    },
    none(`elements without a visible focus, of ${counts.stops}`, faults.focus),
    none("elements that move in spite of prefers-reduced-motion", faults.motion),
    none(`charts without a table behind a button, of ${counts.charts}`, faults.charts),
    atLeast("charts", counts.charts, 1),
    none("ways by keys alone that lead elsewhere", await walk(site)),
  ];
}

/** Finds a sequence, forks it, opens a stream, cancels it, and submits a request. */
async function walk(site: Site): Promise<readonly string[]> {
  const { fleet, url } = site;
  await begin(url, 61, 3);
  const { page } = await site.visit("#/sequences/accumulate");
  try {
    await findByKeys(page, "61");
    await forkByKeys(page, "62");
    slowDown(fleet);
    await cancelByKeys(page, await submitInBackground(url, askFor(TOKENS, "a lap", 9)), MODEL);
    fleet.lines.workerRedis.heal();
    await sendByKeys(page, MODEL);
    return [];
  } catch (error) {
    return [`${page.url()}: ${String(error)}`];
  } finally {
    fleet.lines.workerRedis.heal();
    await page.context().close();
  }
}
