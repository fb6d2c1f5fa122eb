/**
 * `npm run console:pictures`: makes docs/console/*.png, light and dark, from a fleet that works:
 * the fleet, a model, a sequence with its history, and a stream whose worker has just been killed.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { Browser, Locator } from "playwright-core";
import { startFleet, type Fleet } from "../../support/fleet/fleet.js";
import { root } from "../../support/fleet/root.js";
import { submitInBackground } from "../../support/streams/front-doors.js";
import { holderOf, slowDown } from "../../support/streams/stored.js";
import { begin, withHistory } from "../steps.js";
import { show } from "../tour.js";
import { hasBrowser, launch, visit, type Seen } from "../visitor.js";
import { beside } from "../load.js";

const FOLDER = join(root, "docs/console");
const THEMES = ["light", "dark"] as const;
const VIEWPORT = { width: 1_280, height: 860 };
const MOST_BYTES = 200 * 1_024;
/** So that the charts of a model have some points. */
const WORK_MS = 90_000;
const LEAST_TEXT = 150;
const STORY = {
  name: "a story",
  model: "tale-gpt",
  prompt: "Write a short story about a cat who discovers a secret portal.",
  parameters: { max_tokens: 200, temperature: 0.8, seed: 3 },
};

if (!hasBrowser) throw new Error("console:pictures needs Debian's chromium");
mkdirSync(FOLDER, { recursive: true });
const fleet = await startFleet({
  gateways: 2,
  workers: 3,
  jobs: 1,
  models: ["accumulate", "chain", "simple", "tale-gpt"],
  configs: withHistory,
});
try {
  await fleet.whenServing();
  const browser = await launch();
  try {
    await takeAll(browser, fleet);
  } finally {
    await browser.close();
  }
} finally {
  await fleet.dispose();
}

async function takeAll(browser: Browser, running: Fleet): Promise<void> {
  const [url = ""] = running.urls;
  const pages: Pages = [];
  for (const theme of THEMES) {
    pages.push({ theme, seen: await visit(browser, url, "#/fleet", { viewport: VIEWPORT, colorScheme: theme }) });
  }
  await beside(url, { sequences: 4, streams: 0 }, async () => {
    await setTimeout(WORK_MS);
    // The events begin to come when a page shows the fleet, so the page is open before the kill.
    await takeStream(browser, running, url);
    for (const { seen } of pages)
      await seen.page
        .getByText(/has joined$/)
        .first()
        .waitFor();
    await takeEach("fleet", pages);
    await takeEach("models", pages, "#/models/accumulate");
  });
  await begin(url, 42, 9);
  await takeEach("sequence", pages, "#/sequences/accumulate/42", (seen) =>
    seen.page.getByRole("list", { name: "Checkpoints" }).getByRole("button").nth(4),
  );
}

type Pages = { readonly theme: string; readonly seen: Seen }[];

/** The stream stands in the middle while the worker is dead. */
async function takeStream(browser: Browser, running: Fleet, url: string): Promise<void> {
  slowDown(running);
  const id = await submitInBackground(url, STORY);
  const pages: Pages = [];
  for (const theme of THEMES) {
    const options = { viewport: VIEWPORT, colorScheme: theme };
    pages.push({ theme, seen: await visit(browser, url, `#/streams/${id}`, options) });
  }
  const log = (seen: Seen) => seen.page.getByRole("log", { name: "Text" });
  for (const { seen } of pages)
    await log(seen)
      .getByText(new RegExp(`[^]{${LEAST_TEXT}}`))
      .waitFor();
  const redis = running.redis.connect();
  const holder = await holderOf(redis, running.workers, id);
  redis.disconnect();
  await holder.kill();
  await takeEach("stream", pages);
  running.lines.workerRedis.heal();
  for (const { seen } of pages) {
    await seen.page.getByText("completed", { exact: true }).waitFor();
    await seen.page.context().close();
  }
  await holder.start();
}

/**
 * @param hash absent: the page that is shown
 * @param chosen a button to press before
 */
async function takeEach(name: string, pages: Pages, hash?: string, chosen?: (seen: Seen) => Locator): Promise<void> {
  for (const { theme, seen } of pages) {
    if (hash !== undefined) await show(seen, hash);
    await chosen?.(seen).click();
    const path = join(FOLDER, `${name}-${theme}.png`);
    const picture = await seen.page.screenshot({ path, animations: "disabled", fullPage: name === "fleet" });
    if (picture.length > MOST_BYTES) throw new Error(`${path} has ${picture.length} bytes`);
    console.log(`${path}: ${Math.round(picture.length / 1_024)} KB`);
  }
}
