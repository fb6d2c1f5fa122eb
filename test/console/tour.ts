/** A way through all pages: the navigation's pages, then the page of each list's first row. */
import type { Page } from "playwright-core";
import { until } from "../support/until.js";
import { isStream, type Seen } from "./visitor.js";

/** No row leads deeper: a page, a model, a sequence. */
const MOST_PARTS = 3;

/**
 * Shows one page after the other, each with its data.
 * @param more addresses to which nothing leads
 * @returns the address of the page that is shown now
 */
export async function* tour(seen: Seen, more: readonly string[]): AsyncGenerator<string> {
  const { page } = seen;
  const left = [...(await hrefs(page, "nav a")), ...more];
  const known = new Set(left);
  for (let hash = left.shift(); hash !== undefined; hash = left.shift()) {
    await show(seen, hash);
    yield hash;
    const found = await hrefs(page, "[role=row][data-id]:first-child a[href^='#/']");
    for (const one of found) {
      if (known.has(one) || one.split("/").length > MOST_PARTS + 1) continue;
      known.add(one);
      left.push(one);
    }
  }
}

/** Shows a page with its data. */
export async function show(seen: Seen, hash: string): Promise<void> {
  await seen.page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  await quiet(seen);
  await seen.page.getByText("loading", { exact: true }).waitFor({ state: "detached" });
}

/** Resolves when nothing is missing that the page has asked for, and the page shows it. */
export async function quiet({ page, pending }: Seen): Promise<void> {
  // A page asks, and shows its answers, in the frame that follows.
  await page.evaluate("probe.drawn()");
  await until(() => [...pending].every((request) => isStream(new URL(request.url()).pathname)));
  await page.evaluate("probe.drawn()");
}

async function hrefs(page: Page, selector: string): Promise<string[]> {
  const links = await page.locator(selector).all();
  const found = await Promise.all(links.map((link) => link.getAttribute("href")));
  return found.filter((href) => href !== null);
}
