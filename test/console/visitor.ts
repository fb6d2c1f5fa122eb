/**
 * Debian's chromium, which shows the console of a fleet. Notes what each page asks, and what no
 * page may do.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { chromium, type Browser, type BrowserContextOptions, type Page, type Request } from "playwright-core";
import { root } from "../support/fleet/root.js";

const CHROMIUM = "/usr/bin/chromium";

/** Whether the browser is installed. */
export const hasBrowser = existsSync(CHROMIUM);

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

export interface Asked {
  /** As `GET /path`. */
  readonly what: string;
  /** In ms, as `performance.now` of this process. */
  readonly at: number;
}

export interface Seen {
  readonly page: Page;
  /** Errors and warnings in the browser's console, and errors that no code has caught. */
  readonly errors: readonly string[];
  /** Requests to another origin than the gateway's. */
  readonly foreign: readonly string[];
  /** All requests to the gateway. */
  readonly asked: readonly Asked[];
  /** Requests that have no whole answer yet. */
  readonly pending: ReadonlySet<Request>;
}

/** Whether a request, as `GET /path`, is for an event stream, whose answer ends with the stream. */
export function isStream(what: string): boolean {
  return what.endsWith("/events");
}

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS, timeout: PATIENCE_MS });
}

/** Opens the console of a gateway at a hash, in a session of its own. */
export async function visit(
  browser: Browser,
  url: string,
  hash: string,
  options: BrowserContextOptions = {},
): Promise<Seen> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  await context.addInitScript({ path: join(root, "test/console/probe.mjs") });
  const page = await context.newPage();
  const seen = {
    page,
    errors: [] as string[],
    foreign: [] as string[],
    asked: [] as Asked[],
    pending: new Set<Request>(),
  };
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) seen.errors.push(`${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("requestfinished", (request) => seen.pending.delete(request));
  page.on("requestfailed", (request) => seen.pending.delete(request));
  page.on("request", (request) => {
    seen.pending.add(request);
    const { origin, pathname } = new URL(request.url());
    if (origin === url) seen.asked.push({ what: `${request.method()} ${pathname}`, at: performance.now() });
    else if (!request.url().startsWith("data:")) seen.foreign.push(request.url());
  });
  await page.goto(`${url}/console/${hash}`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  return seen;
}
