/** When a browser that has never seen the console shows something, and the rows of the fleet. */
import { readUntil } from "../../support/until.js";
import { atMost, type Figure } from "./figures.js";
import { beside } from "../load.js";
import type { Site } from "./site.js";

const LOAD = { sequences: 8, streams: 2 };
const MOST_MS = 1_000;
/** The figure is the median of so many visits. */
const VISITS = 9;

interface Paints {
  readonly firstMs: number;
  readonly rowsMs: number;
}

export async function checkPaint(site: Site): Promise<readonly Figure[]> {
  const { result, stepsPerSecond } = await beside(site.url, LOAD, async () => {
    const found: Paints[] = [];
    for (let i = 0; i < VISITS; i++) found.push(await paintsOf(site));
    return found;
  });
  const median = (times: readonly number[]) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0;
  const load = `beside ${Math.round(stepsPerSecond)} steps/s and ${LOAD.streams} streams`;
  return [
    atMost(`first paint ${load}`, median(result.map(({ firstMs }) => firstMs)), MOST_MS, "ms"),
    atMost(`rows of the fleet ${load}`, median(result.map(({ rowsMs }) => rowsMs)), MOST_MS, "ms"),
  ];
}

/** A new session has no file of the console. */
async function paintsOf(site: Site): Promise<Paints> {
  const { page } = await site.visit();
  const paints = await readUntil(
    () => page.evaluate<Paints | undefined>("probe.paints()"),
    (found) => found !== undefined,
  );
  await page.context().close();
  if (paints === undefined) throw new Error("the page shows no row");
  return paints;
}
