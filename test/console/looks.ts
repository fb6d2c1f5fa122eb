/** Looks at the page that is shown, and gives a sentence for each fault. */
import type { Page } from "playwright-core";

const THEMES = ["light", "dark"] as const;
/** More elements than any page has. */
const MOST_STOPS = 300;

export interface Contrast {
  readonly lowest: number;
  readonly faults: readonly string[];
}

/** The contrast of each text in both themes. The page must have been opened without motion. */
export async function contrast(page: Page): Promise<Contrast> {
  const found = [];
  for (const colorScheme of THEMES) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const { lowest, faint } = await page.evaluate<{ lowest: number; faint: string[] }>("probe.contrast()");
    found.push({ lowest, faults: faint.map((one) => `${colorScheme}: ${one}`) });
  }
  return {
    lowest: Math.min(...found.map(({ lowest }) => lowest)),
    faults: found.flatMap(({ faults }) => faults),
  };
}

export interface Stops {
  /** How many elements the key Tab reaches. */
  readonly count: number;
  readonly faults: readonly string[];
}

/** Reaches each element by the key Tab, and looks whether the user can see the focus. */
export async function focus(page: Page): Promise<Stops> {
  const faults = [];
  await page.evaluate("document.activeElement?.blur()");
  for (let count = 0; count < MOST_STOPS; count++) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate<{ name: string; isSeen: boolean } | undefined>("probe.focused()");
    if (stop === undefined) return { count, faults };
    if (!stop.isSeen) faults.push(`${stop.name} shows no focus`);
  }
  return { count: MOST_STOPS, faults: ["the key Tab reaches no end"] };
}

/** Each element that moves for a user who wants no motion. */
export async function motion(page: Page): Promise<readonly string[]> {
  await page.emulateMedia({ reducedMotion: "reduce" });
  const moving = await page.evaluate<string[]>("probe.moving()");
  return moving.map((name) => `${name} moves`);
}

export interface Charts {
  readonly count: number;
  readonly faults: readonly string[];
}

/** Opens the table of each chart by a key, and leaves it open. */
export async function charts(page: Page): Promise<Charts> {
  const found = await page.locator("figure").all();
  const faults = [];
  for (const chart of found) {
    const name = (await chart.locator("figcaption").textContent()) ?? "";
    const button = chart.getByText("Table", { exact: true });
    if ((await button.count()) === 1) await button.press("Enter");
    if ((await chart.getByRole("row").count()) < 2) faults.push(`${name} has no table behind a button`);
  }
  return { count: found.length, faults };
}
