/** The page Fleet, and the parts that all pages share. */
import { expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { inBrowser, useBrowser } from "./browser.js";
import { begin } from "./steps.js";
import { quiet, show } from "./tour.js";

const served = useFleet({ models: ["accumulate"], jobs: 1, direct: true });
const browser = useBrowser();

inBrowser("the page Fleet", () => {
  it("shows every process and every model, and how workers come and go", async () => {
    const { page } = await browser.open(served.url);
    await page.getByRole("heading", { level: 1, name: "Fleet" }).waitFor();
    const processes = page.getByRole("grid", { name: "Fleet" });
    await processes.locator("[data-id^='worker/worker-1']").waitFor();
    expect(await processes.getAttribute("aria-rowcount")).toBe("4");
    await page.getByRole("grid", { name: "Models" }).locator("[data-id='accumulate/1/served']").waitFor();
    await page.getByText("Nothing is amiss.").waitFor();

    const added = await served.fleet.addWorker();
    const changes = page.getByRole("log", { name: "Changes" });
    await changes.getByText(/Worker worker-2\S* \(.*\) has joined$/).waitFor();
    await added.kill();
    await changes.getByText(/Worker worker-2\S* \(.*\) has gone$/).waitFor();
  });

  it("has landmarks, and a page for every hash", async () => {
    const { page } = await browser.open(served.url, "#/nowhere");
    for (const role of ["banner", "navigation", "main"] as const) await page.getByRole(role).waitFor();
    await page.getByRole("heading", { level: 1, name: "No such page" }).waitFor();
    for (const name of [
      "Fleet",
      "Models",
      "Settings",
      "Sequences",
      "Streams",
      "Try it",
      "Jobs",
      "Schedules",
      "Batches",
      "Dead letters",
      "Webhooks",
      "Deliveries",
    ]) {
      await page.getByRole("navigation").getByRole("link", { name }).click();
      await page.getByRole("heading", { level: 1, name }).waitFor();
    }
  });

  it("says that it has no such model, with the code and the request", async () => {
    const { page } = await browser.open(served.url, "#/models/none", { provoked: ["404"] });
    const failure = page.getByRole("alert").filter({ hasText: "unknown_model" });
    await failure.getByText(/\(request [0-9a-f-]{36}\)/).waitFor();
  });

  it("changes its theme at a press of a button, and remembers it", async () => {
    const { page } = await browser.open(served.url, "", { colorScheme: "light" });
    await page.getByRole("button", { name: "Theme" }).click();
    expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
    await page.reload();
    await page.getByRole("heading", { level: 1 }).waitFor();
    expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
  });

  it("leads to pages by keys, and shows which keys there are", async () => {
    const { page } = await browser.open(served.url);
    for (const [key, name] of [
      ["m", "Models"],
      ["e", "Settings"],
      ["s", "Sequences"],
      ["r", "Streams"],
      ["j", "Jobs"],
      ["c", "Schedules"],
      ["b", "Batches"],
      ["d", "Dead letters"],
      ["w", "Webhooks"],
      ["v", "Deliveries"],
      ["t", "Try it"],
      ["f", "Fleet"],
    ] as const) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await page.getByRole("heading", { level: 1, name }).waitFor();
    }
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "detached" });
  });

  it("says that the gateway is away, and comes back by itself", async () => {
    const { page } = await browser.open(served.url, "", { provoked: ["ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE"] });
    await page.getByRole("grid", { name: "Fleet" }).waitFor();
    const away = page.getByText("The gateway does not answer.");
    const [gateway] = served.fleet.gateways;
    await gateway?.member.kill();
    await away.waitFor();
    expect(await page.getByRole("grid", { name: "Fleet" }).isVisible()).toBe(true);
    const old = page.getByText(/^old, as of \d+ s ago$/);
    await old.waitFor();
    await gateway?.member.start();
    for (const one of [away, old]) await one.waitFor({ state: "detached" });
  });

  it("asks no other path than it shows, and one at a time", async () => {
    const { page, asked } = await browser.open(served.url);
    await page.getByRole("grid", { name: "Fleet" }).waitFor();
    expect(asked.map(({ what }) => what).filter((what) => what.startsWith("GET /v2"))).toEqual(["GET /v2/fleet"]);
  });
});

inBrowser("a page that rests", () => {
  it("reads its paths in turn, one in five seconds, and none while its tab is hidden", async () => {
    const seen = await browser.open(served.url, "#/nowhere");
    const { page, asked } = seen;
    await page.clock.install();
    await show(seen, "#/models/accumulate");
    await page.clock.pauseAt(Date.now() + 60_000);
    const rest = async () => {
      const before = asked.length;
      await page.clock.runFor(5_000);
      await quiet(seen);
      return asked.slice(before).map(({ what }) => what);
    };
    await quiet(seen);
    const found = [await rest(), await rest(), await rest(), await rest()];
    expect(found.map(({ length }) => length)).toEqual([1, 1, 1, 1]);
    expect(new Set(found.flat())).toEqual(new Set(["GET /v2/fleet", "GET /v2/fleet/history"]));

    await page.evaluate("probe.hide(true)");
    await page.getByRole("button", { name: "Refresh" }).click();
    expect([await rest(), await rest()]).toEqual([[], []]);
    await page.evaluate("probe.hide(false)");
    await expect.poll(() => asked.at(-1)?.what).toMatch("GET /v2/fleet");
  });
});

inBrowser("the page of a model", () => {
  it("draws the last minutes of a model, and has them as a table", async () => {
    await begin(served.url, 70, 3);
    const { page } = await browser.open(served.url, "#/models/accumulate");
    await page.getByRole("heading", { level: 2, name: "The last minutes" }).waitFor();
    const chart = page.getByRole("figure").filter({ hasText: "Time of a request" });
    await chart.locator("canvas").waitFor();
    await chart.getByText("Table").click();
    await expect.poll(() => chart.getByRole("row").count()).toBeGreaterThan(2);
    expect(await chart.getByRole("columnheader").allTextContents()).toEqual(["Time", "50 %", "99 %"]);
  });
});
