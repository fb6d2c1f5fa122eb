/** A list of more sequences than the console lists: scrolled from end to end, and searched. */
import type { Page } from "playwright-core";
import { step } from "../steps.js";
import { atMost, type Figure } from "./figures.js";
import type { Site } from "./site.js";

/** The most that the console lists. */
const LISTED = 10_000;
const SEQUENCES = 10_500;
const FIRST = 100_001;
const CLIENTS = 64;
/** Of the list, and beyond its end. */
const SEARCHES = 5;
/** Another process that takes the cores for a moment delays a frame, but not in each pass. */
const PASSES = 3;
const MOST_FRAME_MS = 100;
const MOST_ROWS = 200;
const MOST_SEARCH_MS = 1_000;

export async function checkRows(site: Site): Promise<readonly Figure[]> {
  await makeSequences(site.url);
  const { page } = await site.visit("#/sequences/accumulate");
  await page.getByText(/^1\d,\d{3} sequences$/).waitFor();
  const passes = [];
  for (let i = 0; i < PASSES; i++) passes.push(await page.evaluate<Scrolled>("probe.scroll()"));
  const { listed, others } = await divided(site.url);
  const sought = [...spread(listed), ...spread(others)];
  const searches = [];
  for (const id of sought) searches.push(await search(page, String(id)));
  await page.context().close();
  const beyond = `${searches.length} searches, half beyond the list`;
  return [
    atMost(
      `longest frame through ${listed.length} rows, best of ${PASSES} passes`,
      Math.min(...passes.map(({ longestMs }) => longestMs)),
      MOST_FRAME_MS,
      "ms",
    ),
    atMost("rows in the document", Math.max(...passes.map(({ mostRows }) => mostRows)), MOST_ROWS),
    atMost(`longest of ${beyond}`, Math.max(...searches), MOST_SEARCH_MS, "ms"),
  ];
}

interface Scrolled {
  readonly longestMs: number;
  readonly mostRows: number;
}

async function makeSequences(url: string): Promise<void> {
  let next = FIRST;
  const client = async () => {
    while (next < FIRST + SEQUENCES) await step(url, next++, 1, { start: true });
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
}

/** The sequences that the console lists, and the sequences beyond the list's end. */
async function divided(url: string) {
  const [listed, others]: [Set<number>, Set<number>] = [new Set(), new Set()];
  let after: string | undefined;
  do {
    const query = new URLSearchParams({ limit: "1000", ...(after !== undefined && { after }) });
    const answer = await fetch(`${url}/v2/models/accumulate/sequences?${query.toString()}`);
    const { sequences, next } = (await answer.json()) as Listed;
    const into = listed.size < LISTED ? listed : others;
    for (const { sequence_id: id } of sequences) if (!listed.has(id)) into.add(id);
    after = next;
  } while (after !== undefined);
  return { listed: [...listed], others: [...others] };
}

interface Listed {
  readonly sequences: readonly { readonly sequence_id: number }[];
  readonly next?: string;
}

/** Some ids, from the whole of the list. */
function spread(ids: readonly number[]): readonly number[] {
  return ids.filter((_, i) => i % Math.ceil(ids.length / SEARCHES) === 0);
}

/** @returns the time from the text to its row, in ms */
async function search(page: Page, id: string): Promise<number> {
  const since = performance.now();
  await page.getByRole("searchbox").fill(id);
  await page.locator(`[data-id='${id}']`).waitFor();
  return performance.now() - since;
}
