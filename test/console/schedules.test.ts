/** The page Schedules: schedules are found, submitted, paused, resumed and deleted. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { ask, simpleBody } from "../jobs/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { inBrowser, useBrowser } from "./browser.js";

const served = useFleet({ models: ["simple"], jobs: 1, direct: true });
const browser = useBrowser();

const daily = { cron: "30 9 * * *", timezone: "Europe/Berlin" };
const row = (page: Page, id: string) => page.getByRole("grid", { name: "Schedules" }).locator(`[data-id="${id}"]`);

async function make(rhythm: object): Promise<string> {
  const body = { ...rhythm, job: { infer: simpleBody(1) } };
  const { status, body: made, text } = await ask(`${served.url}/v2/models/simple/schedules`, { body });
  if (status !== 201) throw new Error(text);
  return made.id;
}

const stateOf = async (id: string) => (await ask(`${served.url}/v2/schedules/${id}`)).body.state;

inBrowser("the list of schedules", () => {
  it("is searched on all of its pages, and not on the shown page alone", async () => {
    const oldest = await make({ cron: "0 3 * * *", timezone: "Asia/Tokyo" });
    for (let i = 0; i < 101; i++) await make(daily);
    const { page } = await browser.open(served.url, "#/schedules");
    await page.getByText("The newest: 100 schedules").waitFor();
    expect(await row(page, oldest).count()).toBe(0);
    await page.getByLabel(/^Search/).fill("tokyo");
    await row(page, oldest).waitFor();
    await expect.poll(() => page.getByRole("grid").getAttribute("aria-rowcount")).toBe("2");
    expect(new URL(page.url()).hash).toBe("#/schedules?q=tokyo");
    await page.getByLabel("State").selectOption("paused");
    await page.getByText("No schedules fit.").waitFor();
  });
});

inBrowser("a schedule", () => {
  it("is submitted in the zone of the browser, and shows its next times and its job", async () => {
    const { page } = await browser.open(served.url, "#/schedules", { timezoneId: "Europe/Berlin" });
    await page.getByRole("button", { name: "Submit" }).click();
    const text = page.getByLabel(/^The schedule/);
    await expect.poll(() => text.inputValue()).toContain("Europe/Berlin");
    await page.getByRole("button", { name: "Submit schedule" }).click();
    await page.getByRole("heading", { level: 1, name: /^Schedule sched_/ }).waitFor();
    await page.getByRole("definition").filter({ hasText: "30 9 * * 1-5 in Europe/Berlin" }).waitFor();
    await page.getByRole("rowheader", { name: "5", exact: true }).waitFor();
    await page.locator("pre").getByText("INPUT0").waitFor();
  });

  it("is paused, resumed and deleted, and leads to its jobs", async () => {
    const id = await make({ every: 1_000 });
    const { page } = await browser.open(served.url, "#/schedules");
    await row(page, id)
      .getByRole("button", { name: `Pause ${id}` })
      .click();
    await row(page, id).getByText("paused", { exact: true }).waitFor();
    expect(await stateOf(id)).toBe("paused");
    await row(page, id)
      .getByRole("button", { name: `Resume ${id}` })
      .click();
    await row(page, id).getByText("active", { exact: true }).waitFor();

    await row(page, id).getByText("every 1 s").click();
    await page.getByRole("heading", { level: 1, name: `Schedule ${id}` }).waitFor();
    await page.getByRole("link", { name: "Jobs of this schedule" }).click();
    await page.getByRole("grid", { name: "Jobs" }).locator("[data-id]").first().waitFor();
    await page.goBack();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("button", { name: `Delete ${id}` }).click();
    await page.getByRole("heading", { level: 1, name: "Schedules" }).waitFor();
    expect((await ask(`${served.url}/v2/schedules/${id}`)).status).toBe(404);
  });
});
