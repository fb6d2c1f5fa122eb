/** One browser for all tests of a file. No page of a test may do a forbidden thing. */
import type { Browser, BrowserContextOptions } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect } from "vitest";
import { hasBrowser, launch, visit, type Seen } from "./visitor.js";

/** Groups tests that need the browser; they are skipped on a machine without it. */
export const inBrowser = (name: string, tests: () => void): void => {
  describe.skipIf(!hasBrowser)(`${name}${hasBrowser ? "" : " (skipped: needs Debian's chromium)"}`, tests);
};

export interface Visit extends BrowserContextOptions {
  /** Parts of errors that the test provokes. */
  readonly provoked?: readonly string[];
}

export interface Visitor {
  /** Opens the console of a gateway at a hash. */
  open(url: string, hash?: string, options?: Visit): Promise<Seen>;
}

export function useBrowser(): Visitor {
  let browser: Browser | undefined;
  const all: { readonly seen: Seen; readonly provoked: readonly string[] }[] = [];
  beforeAll(async () => {
    if (hasBrowser) browser = await launch();
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
      const seen = await visit(browser, url, hash, options);
      all.push({ seen, provoked });
      return seen;
    },
  };
}
