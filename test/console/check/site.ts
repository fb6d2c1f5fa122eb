/** The fleet and the browser of all checks. */
import type { Browser, BrowserContextOptions } from "playwright-core";
import { startFleet, type Fleet } from "../../support/fleet/fleet.js";
import { furnish, sitePlan } from "../site.js";
import { launch, visit, type Seen } from "../visitor.js";

export class Site {
  /** Each page that a check has opened. */
  readonly seen: Seen[] = [];

  private constructor(
    readonly fleet: Fleet,
    readonly url: string,
    /** Addresses to which no list leads. */
    readonly more: readonly string[],
    readonly browser: Browser,
  ) {}

  static async open(): Promise<Site> {
    const fleet = await startFleet(sitePlan);
    try {
      await fleet.whenServing();
      const [url = ""] = fleet.urls;
      return new Site(fleet, url, await furnish(url), await launch());
    } catch (error) {
      await fleet.dispose();
      throw error;
    }
  }

  async visit(hash = "", options: BrowserContextOptions = {}): Promise<Seen> {
    const seen = await visit(this.browser, this.url, hash, options);
    this.seen.push(seen);
    return seen;
  }

  /** Whatever fails, no process of the fleet stays. */
  async close(): Promise<void> {
    await this.browser.close();
    await this.fleet.dispose();
  }
}
