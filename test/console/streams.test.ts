/** The page Streams: a stream's text goes on while its worker is killed, and over a reload. */
import { expect, it, onTestFinished } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { askFor } from "../support/streams/ask.js";
import { submitInBackground } from "../support/streams/front-doors.js";
import { holderOf, readStored, slowDown } from "../support/streams/stored.js";
import { until } from "../support/until.js";
import { inBrowser, useBrowser } from "./browser.js";
import { cancelByKeys, sendByKeys } from "./walk.js";

/** So many tokens take seconds on a slow line, so that workers freeze before the end. */
const MANY = 600;
/** The page is walked through before so many tokens have come. */
const MOST = 1_900;
const MODEL = "gen-mha";
const served = useFleet({ workers: 2, models: [MODEL] });
const browser = useBrowser();

/** The whole text of a stream that has ended. */
async function textOf(id: string): Promise<string> {
  const status = (await (await fetch(`${served.url}/v2/requests/${id}`)).json()) as {
    readonly state: string;
    readonly outcome: { readonly choices: readonly { readonly text: string }[] };
  };
  expect(status.state).toBe("completed");
  return status.outcome.choices[0]?.text ?? "";
}

async function endOf(id: string): Promise<void> {
  await (await fetch(`${served.url}/v2/requests/${id}/events`)).text();
}

inBrowser("a stream", () => {
  it("goes on while its worker is killed: the text is the same as undisturbed", async () => {
    const { fleet, redis } = served;
    const calm = await submitInBackground(served.url, askFor(MANY, "a lap", 7));
    await endOf(calm);
    slowDown(fleet);
    const id = await submitInBackground(served.url, askFor(MANY, "a lap", 7));
    await until(async () => (await readStored(redis, id)).log.length > 20);
    // While all workers are frozen, the stream stands in the middle, and the page comes there.
    for (const worker of fleet.workers) worker.freeze();
    const holder = await holderOf(redis, fleet.workers, id);
    fleet.lines.workerRedis.heal();
    const { page } = await browser.open(served.url, `#/streams/${id}`);
    const log = page.getByRole("log", { name: "Text" });
    await expect.poll(async () => (await log.textContent())?.length ?? 0).toBeGreaterThan(10);
    const shown = (await log.textContent()) ?? "";
    await holder.kill();
    for (const worker of fleet.workers) if (worker !== holder) worker.thaw();
    await page.getByText("completed").waitFor();
    await holder.start();
    const text = await textOf(id);
    expect(text.startsWith(shown) && text.length > shown.length).toBe(true);
    expect(text).toBe(await textOf(calm));
    expect(await log.textContent()).toBe(text);

    // The tab that comes back shows the same, and again from a record in the middle.
    await page.reload();
    await page.getByText("completed").waitFor();
    await expect.poll(() => log.textContent()).toBe(text);
    await page.getByLabel("Index of the first record").fill(String(MANY / 2));
    await page.getByRole("button", { name: "Resume" }).click();
    await expect.poll(async () => text.endsWith((await log.textContent()) ?? "-") && log.textContent()).not.toBe(text);
  });

  it("that runs is found by its model, and cancelled, by keys alone", async () => {
    const { fleet } = served;
    const { page } = await browser.open(served.url);
    slowDown(fleet);
    onTestFinished(() => fleet.lines.workerRedis.heal());
    await cancelByKeys(page, await submitInBackground(served.url, askFor(MOST, "a lap", 9)), MODEL);
  });

  it("is cancelled after a question", async () => {
    const { fleet } = served;
    for (const worker of fleet.workers) worker.freeze();
    onTestFinished(() => {
      for (const worker of fleet.workers) worker.thaw();
    });
    const id = await submitInBackground(served.url, askFor(MANY, "a lap", 8));
    const { page } = await browser.open(served.url, `#/streams/${id}`);
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.getByRole("button", { name: `Cancel ${id.slice(0, 12)}` }).click();
    await page.getByText("cancelled", { exact: true }).waitFor();
    const status = (await (await fetch(`${served.url}/v2/requests/${id}`)).json()) as { readonly state: string };
    expect(status.state).toBe("cancelled");
  });

  it("of an unknown request is refused in words", async () => {
    const { page } = await browser.open(served.url, "#/streams/none", { provoked: ["404"] });
    await page.getByRole("alert").getByText("unknown_request").waitFor();
  });

  it("begins with a prompt, by keys alone", async () => {
    const { page } = await browser.open(served.url);
    await sendByKeys(page, MODEL);
    const id = decodeURIComponent(new URL(page.url()).hash.replace("#/streams/", ""));
    await expect.poll(() => page.getByRole("log", { name: "Text" }).textContent()).toBe(await textOf(id));
    await page.keyboard.press("Escape");
    await page.locator(`[data-id='${id}']`).waitFor();
  });
});
