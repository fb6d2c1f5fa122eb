/** The page Settings: whether the gateway and its brokers work, and how the gateway is set up. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { inBrowser, useBrowser } from "./browser.js";

const served = useFleet({
  models: ["simple"],
  env: { BATON_SERVER_NAME: "<i>lap</i>", BATON_SECRETS_KEY: "0".repeat(64) },
});
const browser = useBrowser();

const figure = (page: Page, name: string) =>
  page.locator(".figures > div", { has: page.getByText(name, { exact: true }) }).getByRole("definition");
const row = (page: Page, name: string) => page.getByRole("grid", { name: "Settings" }).locator(`[data-id="${name}"]`);

inBrowser("the page Settings", () => {
  it("shows the settings that differ from their defaults, and all of them if the user asks", async () => {
    const { page } = await browser.open(served.url, "#/settings");
    await row(page, "BATON_SERVER_NAME").getByText("<i>lap</i>").waitFor();
    expect(await row(page, "BATON_SECRETS_KEY").textContent()).toContain("set");
    expect(await page.content()).not.toContain("0".repeat(64));
    expect(await row(page, "BATON_CONSOLE").count()).toBe(0);
    await page.getByLabel("Settings with their default, too").check();
    await page.getByRole("searchbox").fill("baton_console");
    await row(page, "BATON_CONSOLE").waitFor();
    expect(new URL(page.url()).hash).toBe("#/settings?show=all&q=baton_console");
    await expect.poll(() => page.getByRole("grid", { name: "Settings" }).getAttribute("aria-rowcount")).toBe("2");
    expect(await figure(page, "Gateway").textContent()).toBe("ready");
    expect(await figure(page, "Version").textContent()).toMatch(/^<i>lap<\/i> \d+\.\d+\.\d+/);
    const versions = page.getByRole("grid", { name: "Versions" }).locator("[data-id^='gateway/']");
    await versions.getByText(/^\d+\.\d+\.\d+/).waitFor();
  });

  it.each(["NATS", "Redis"])("shows that %s is away, and that it has come back", async (name) => {
    const { nats, gatewayRedis } = served.fleet.lines;
    const line = name === "NATS" ? nats : gatewayRedis;
    // Without Redis the gateway is not ready, which its path of health says with a status of 400.
    // The gateway then cannot describe the fleet either.
    const { page } = await browser.open(served.url, "#/settings", { provoked: ["400", "503"] });
    const broker = figure(page, name);
    const state = async () => {
      await page.getByRole("button", { name: "Refresh" }).click();
      return broker.textContent();
    };
    await expect.poll(state, { interval: 500 }).toBe("connected");
    line.blackHole("toServer", "toClient");
    line.resetAll();
    await expect.poll(state, { interval: 500 }).toBe("away");
    line.heal();
    line.resetAll();
    await expect.poll(state, { interval: 500 }).toBe("connected");
    await page
      .getByRole("definition")
      .filter({ hasText: /^ready$/ })
      .waitFor();
  });
});
