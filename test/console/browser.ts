/** Debian's chromium, which shows the console of a fleet, and notes what the page must not do. */
import { existsSync } from "node:fs";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect } from "vitest";

const CHROMIUM = "/usr/bin/chromium";
const isThere = existsSync(CHROMIUM);

const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** How long a page may take to show something, in ms. Only a fault takes so long. */
const PATIENCE_MS = 60_000;

/** Groups tests that need the browser; they are skipped on a machine without it. */
export const inBrowser = (name: string, tests: () => void): void => {
  describe.skipIf(!isThere)(`${name}${isThere ? "" : " (skipped: needs Debian's chromium)"}`, tests);
};

export interface Seen {
  readonly page: Page;
  /** Errors in the browser's console, and errors that no code has caught. */
  readonly errors: readonly string[];
  /** Requests to another origin than the gateway's. */
  readonly foreign: readonly string[];
  /** All requests to the gateway, as `GET /path`. */
  readonly asked: readonly string[];
}

export interface Visit extends BrowserContextOptions {
  /** Parts of errors that the test provokes. */
  readonly provoked?: readonly string[];
}

export interface Visitor {
  /** Opens the console of a gateway at a hash. */
  open(url: string, hash?: string, visit?: Visit): Promise<Seen>;
}

/** One browser for all tests of a file. No page of a test may do a forbidden thing. */
export function useBrowser(): Visitor {
  let browser: Browser | undefined;
  const all: { readonly seen: Seen; readonly provoked: readonly string[] }[] = [];
  beforeAll(async () => {
    if (!isThere) return;
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS, timeout: PATIENCE_MS });
  });
  afterAll(() => browser?.close());
  // A hook for all tests that fails would keep the fleet from its end.
  afterEach(async () => {
    const pages = all.splice(0);
    for (const { seen } of pages) await seen.page.context().close();
    for (const { seen, provoked } of pages) {
      expect(seen.foreign).toEqual([]);
      expect(seen.errors.filter((error) => !provoked.some((part) => error.includes(part)))).toEqual([]);
    }
  });
  return {
    async open(url, hash = "", { provoked = [], ...options } = {}) {
      if (browser === undefined) throw new Error("the browser has not been started");
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
      context.setDefaultTimeout(PATIENCE_MS);
      const page = await context.newPage();
      const seen = { page, errors: [] as string[], foreign: [] as string[], asked: [] as string[] };
      page.on("console", (message) => {
        if (message.type() === "error") seen.errors.push(`${message.text()} ${message.location().url}`);
      });
      page.on("pageerror", (error) => seen.errors.push(String(error)));
      page.on("request", (request) => {
        const { origin, pathname } = new URL(request.url());
        if (origin === url) seen.asked.push(`${request.method()} ${pathname}`);
        else if (!request.url().startsWith("data:")) seen.foreign.push(request.url());
      });
      all.push({ seen, provoked });
      await page.goto(`${url}/console/${hash}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      return seen;
    },
  };
}
