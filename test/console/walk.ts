/** Ways through the console by keys alone. Each throws if a key leads elsewhere. */
import type { Locator, Page } from "playwright-core";
import { until } from "../support/until.js";

/** More elements than stand before any element of a page. */
const MOST_STOPS = 60;

const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
const focused = (page: Page) => page.locator(":focus");

/** Finds a sequence in its list, and opens its page. */
export async function findByKeys(page: Page, id: string): Promise<void> {
  await page.keyboard.press("/");
  await page.keyboard.type(id.slice(0, 1));
  await page.keyboard.press("Escape");
  await page.locator(`[data-id='${id}']`).waitFor();
  await page.keyboard.press("j");
  await until(async () => {
    if ((await focused(page).getAttribute("data-id")) === id) return true;
    await page.keyboard.press("j");
    return false;
  });
  await page.keyboard.press("Enter");
  await heading(page, `Sequence ${id}`);
}

/** On the page of a sequence: forks its first checkpoint. */
export async function forkByKeys(page: Page, to: string): Promise<void> {
  await page.getByRole("button", { name: "Fork" }).waitFor();
  await page.keyboard.press(".");
  await page.keyboard.press("Enter");
  await tabTo(page, page.getByLabel("New sequence id, which continues from step 1"));
  await page.keyboard.type(to);
  await page.keyboard.press("Enter");
  await heading(page, `Sequence ${to}`);
}

/** Opens a stream that runs, and cancels it. */
export async function cancelByKeys(page: Page, id: string, model: string): Promise<void> {
  await goTo(page, "r", "Streams");
  await page.getByRole("option", { name: model }).waitFor({ state: "attached" });
  await tabTo(page, page.getByLabel("Model"));
  await page.keyboard.type(model);
  await page.keyboard.press("Escape");
  await page.locator(`[data-id='${id}']`).waitFor();
  await tabTo(page, page.locator(`[data-id='${id}']`));
  await page.keyboard.press("Enter");
  await heading(page, "Stream");
  await page.getByRole("button", { name: "Cancel", exact: true }).waitFor();
  await page.keyboard.press(".");
  await page.keyboard.press("Enter");
  // The button that keeps the stream has the focus.
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Enter");
  await page.getByText("cancelled", { exact: true }).waitFor();
}

/** Sends a prompt to a language model, and waits for the end of its stream. */
export async function sendByKeys(page: Page, model: string): Promise<void> {
  await goTo(page, "t", "Try it");
  const row = page.locator(`[data-id='${model}']`);
  await row.waitFor();
  await until(async () => {
    await page.keyboard.press("j");
    return isFocused(page, row);
  });
  await page.keyboard.press("Enter");
  await tabTo(page, page.getByLabel("Prompt"));
  await page.keyboard.press("Control+A");
  await page.keyboard.type("the baton");
  await page.keyboard.press("Tab");
  await page.keyboard.type("5");
  await page.keyboard.press("Enter");
  await heading(page, "Stream");
  await page.getByText("completed", { exact: true }).waitFor();
}

async function goTo(page: Page, key: string, name: string): Promise<void> {
  await page.keyboard.press("g");
  await page.keyboard.press(key);
  await heading(page, name);
}

async function tabTo(page: Page, element: Locator): Promise<void> {
  await element.waitFor();
  for (let stops = 0; stops < MOST_STOPS; stops++) {
    if (await isFocused(page, element)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error("the key Tab does not reach the element");
}

async function isFocused(page: Page, element: Locator): Promise<boolean> {
  return (await element.and(focused(page)).count()) === 1;
}
