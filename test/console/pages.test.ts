/** All pages of the console: each can be read, reached by keys, and asks nobody else. */
import { beforeAll, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { inBrowser, useBrowser } from "./browser.js";
import { charts, contrast, focus, motion } from "./looks.js";
import { furnish, sitePlan } from "./site.js";
import { tour } from "./tour.js";

const served = useFleet(sitePlan);
const browser = useBrowser();

inBrowser("all pages", () => {
  let more: readonly string[] = [];
  beforeAll(async () => {
    more = await furnish(served.url);
  });

  it("are readable in both themes, and still for a user who wants no motion", async () => {
    const seen = await browser.open(served.url);
    const faults = [];
    for await (const hash of tour(seen, more)) {
      const found = [...(await charts(seen.page)).faults, ...(await contrast(seen.page)).faults];
      for (const fault of [...found, ...(await motion(seen.page))]) faults.push(`${hash}: ${fault}`);
    }
    expect(faults).toEqual([]);
  });

  it("are readable with the help, a question, and a failure", async () => {
    const seen = await browser.open(served.url, "#/sequences/accumulate/60", { provoked: ["409"] });
    const { page } = seen;
    await page.getByLabel(/^New sequence id/).fill("60");
    await page.getByRole("button", { name: "Fork" }).click();
    await page.getByRole("button", { name: "Close" }).waitFor();
    await page.getByRole("button", { name: "End", exact: true }).click();
    await page.getByRole("button", { name: "Keep" }).press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    expect((await contrast(page)).faults).toEqual([]);
  });

  it("show the focus at each element that the key Tab reaches", async () => {
    const seen = await browser.open(served.url);
    const faults = [];
    for await (const hash of tour(seen, more)) {
      const { count, faults: found } = await focus(seen.page);
      expect(count).toBeGreaterThan(5);
      for (const fault of found) faults.push(`${hash}: ${fault}`);
    }
    expect(faults).toEqual([]);
  });
});
