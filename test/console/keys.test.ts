/** The console of a gateway that asks for API keys. */
import { expect, it } from "vitest";
import { useKeyedFleet } from "../auth/keyed.js";
import { inBrowser, useBrowser } from "./browser.js";

const { served, make } = useKeyedFleet({ models: ["accumulate"], direct: true });
const browser = useBrowser();

inBrowser("a gateway that asks for keys", () => {
  it("gives the page to all, and the page asks for a key", async () => {
    const { text } = await make({ scopes: ["read", "operator"] });
    const { page } = await browser.open(served.url, "", { provoked: ["401"] });
    const field = page.getByLabel(/^This gateway asks for an API key/);
    await field.fill("bk_wrong");
    await page.getByRole("button", { name: "Use key" }).click();
    await page.getByText("the API key is not valid").first().waitFor();
    await field.fill(text);
    await page.getByRole("button", { name: "Use key" }).click();
    await page.getByRole("grid", { name: "Fleet" }).waitFor();
    expect(await field.count()).toBe(0);
    expect(page.url()).not.toContain(text);
    expect(await page.evaluate("[document.cookie, localStorage.length]")).toEqual(["", 0]);
    await page.reload();
    await page.getByRole("grid", { name: "Fleet" }).waitFor();
    await page.getByRole("button", { name: "Forget key" }).click();
    await field.waitFor();
    expect(await page.getByRole("grid", { name: "Fleet" }).count()).toBe(0);
  });

  it("shows a key that is no operator's its own models and load", async () => {
    const { text } = await make({ scopes: ["read"] });
    const { page } = await browser.open(served.url, "", { provoked: ["401"] });
    await page.getByLabel(/^This gateway asks for an API key/).fill(text);
    await page.getByRole("button", { name: "Use key" }).click();
    await page.getByText("acme").waitFor();
    await page.getByRole("grid", { name: "Models" }).locator("[data-id='accumulate/1']").waitFor();
  });
});
