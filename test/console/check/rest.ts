/** The requests of pages that rest, and of hidden tabs. */
import { setTimeout } from "node:timers/promises";
import { askFor } from "../../support/streams/ask.js";
import { submitInBackground } from "../../support/streams/front-doors.js";
import { slowDown } from "../../support/streams/stored.js";
import { show, tour } from "../tour.js";
import { isStream, type Seen } from "../visitor.js";
import { atLeast, atMost, none, type Figure } from "./figures.js";
import type { Site } from "./site.js";

/** Long enough for three polls. */
const REST_MS = 16_000;
/** A page may ask once in 5 s. This process sees a request a little after the page. */
const TURN_MS = 4_900;
const HIDDEN_MS = 7_000;
/** On a slow line the stream runs for longer than the pages rest. */
const TOKENS = 4_000;

export async function checkRest(site: Site): Promise<readonly Figure[]> {
  const first = await site.visit();
  const hashes = [];
  for await (const hash of tour(first, site.more)) hashes.push(hash);
  await first.page.context().close();

  // The page of a stream that runs follows it, and asks how it stands.
  slowDown(site.fleet);
  const id = await submitInBackground(site.url, askFor(TOKENS, "a lap", 9));
  hashes.push(`#/streams/${id}`);
  // All pages rest at the same time.
  const pages = [];
  for (const hash of hashes) {
    const seen = await site.visit(hash);
    await show(seen, hash);
    pages.push({ hash, seen });
  }
  const since = performance.now();
  await setTimeout(REST_MS);
  site.fleet.lines.workerRedis.heal();
  const found = pages.map(({ hash, seen }) => ({ hash, ...rate(seen, since) }));
  for (const { seen } of pages) await seen.page.evaluate("probe.hide(true)");
  const hiddenSince = performance.now();
  await setTimeout(HIDDEN_MS);
  const asking = pages.flatMap(({ hash, seen }) => {
    const asked = askedSince(seen, hiddenSince);
    return asked.length === 0 ? [] : [`${hash} asked ${asked.map(({ what }) => what).join(", ")}`];
  });
  for (const { seen } of pages) await seen.page.context().close();
  const most = Math.max(...found.map(({ count }) => count));
  return [
    {
      ...atMost("most requests in 5 s of a page that rests", most, 1),
      faults: found.filter(({ count }) => count > 1).map(({ hash, whats }) => `${hash}: ${whats.join(", ")}`),
    },
    atLeast("event streams of all pages that rest", sum(found.map(({ streams }) => streams)), 1),
    atMost("most event streams of a page that rests", Math.max(...found.map(({ streams }) => streams)), 1),
    none("hidden tabs that ask", asking),
  ];
}

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);

const askedSince = ({ asked }: Seen, since: number) => asked.filter(({ at }) => at >= since);

/** The requests in the worst 5 s, and the event streams that are open. */
function rate(seen: Seen, since: number) {
  const polls = askedSince(seen, since).filter(({ what }) => !isStream(what));
  const windows = polls.map(({ at }) => polls.filter((one) => one.at >= at && one.at < at + TURN_MS));
  const worst = windows.toSorted((a, b) => b.length - a.length)[0] ?? [];
  const streams = [...seen.pending].filter((request) => isStream(new URL(request.url()).pathname));
  return { count: worst.length, whats: worst.map(({ what }) => what), streams: streams.length };
}
