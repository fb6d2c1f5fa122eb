/** The page Sequences: a sequence is forked, rewound, carried and ended, by mouse and by keys. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { inBrowser, useBrowser } from "./browser.js";
import { begin, step, withHistory } from "./steps.js";
import { findByKeys, forkByKeys } from "./walk.js";

const served = useFleet({ models: ["accumulate", "chain"], configs: withHistory, direct: true });
const browser = useBrowser();

const LIST = "#/sequences/accumulate";

const steps = (page: Page) => page.getByRole("list", { name: "Checkpoints" }).getByRole("button");
const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name, exact: true }).waitFor();

inBrowser("a sequence", () => {
  it("is forked from an earlier checkpoint", async () => {
    await begin(served.url, 10, 4);
    const { page } = await browser.open(served.url, LIST);
    await page.locator("[data-id='10']").click();
    await heading(page, "Sequence 10");
    await steps(page).nth(1).click();
    await page.getByLabel("New sequence id, which continues from step 2").fill("11");
    await page.getByRole("button", { name: "Fork" }).click();
    await heading(page, "Sequence 11");
    // 1 + 2, and the next value.
    expect(await step(served.url, 11, 100)).toBe(103);
    expect(await step(served.url, 10, 100)).toBe(110);
  });

  it("is rewound to an earlier checkpoint, after a question that names it", async () => {
    await begin(served.url, 20, 4);
    const { page } = await browser.open(served.url, `${LIST}/20`);
    await steps(page).nth(2).click();
    await page.getByRole("button", { name: "Rewind", exact: true }).click();
    await page.getByRole("button", { name: "Rewind 20 to step 3" }).click();
    await expect.poll(() => steps(page).count()).toBe(3);
    expect(await step(served.url, 20, 100)).toBe(106);
  });

  it("is carried to another id as an exported state", async () => {
    await begin(served.url, 30, 3);
    const { page } = await browser.open(served.url, `${LIST}/30`);
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Export" }).click(),
    ]);
    expect(file.suggestedFilename()).toBe("accumulate-30-step-3.state");
    await page.getByRole("link", { name: "Sequences of accumulate" }).click();
    await page.getByRole("button", { name: "Import" }).click();
    await page.getByLabel("New sequence id").fill("31");
    await page.getByLabel("Exported state").setInputFiles(await file.path());
    await page.getByRole("button", { name: "Import state" }).click();
    await heading(page, "Sequence 31");
    expect(await step(served.url, 31, 100)).toBe(106);
  });

  it("ends only when the user says so twice, under an Idempotency-Key", async () => {
    await begin(served.url, 42, 2);
    const { page } = await browser.open(served.url, `${LIST}/42`);
    const keys: (string | undefined)[] = [];
    page.on("request", (request) => {
      if (request.method() === "DELETE") keys.push(request.headers()["idempotency-key"]);
    });
    await page.getByRole("button", { name: "End", exact: true }).click();
    await page.getByRole("button", { name: "Keep" }).click();
    expect(await step(served.url, 42, 0)).toBe(3);
    await page.getByRole("button", { name: "End", exact: true }).click();
    await page.getByRole("button", { name: "End 42" }).click();
    await heading(page, "Sequences");
    expect(keys).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/)]);
    await expect(step(served.url, 42, 0)).rejects.toThrow("sequence_start_required");
  });
});

inBrowser("a change of a sequence", () => {
  it("that the gateway refuses shows the code, the message and the request, until closed", async () => {
    await begin(served.url, 50, 2);
    await begin(served.url, 51, 1);
    const { page } = await browser.open(served.url, `${LIST}/50`, { provoked: ["409"] });
    await page.getByLabel(/^New sequence id/).fill("51");
    await page.getByRole("button", { name: "Fork" }).click();
    const failure = page.getByRole("alert").filter({ hasText: "Fork 50 failed." });
    await failure.getByText("sequence_exists").waitFor();
    expect(await failure.textContent()).toMatch(/\(request [0-9a-f-]{36}\)/);
    await failure.getByRole("button", { name: "Close" }).click();
    await failure.getByText("sequence_exists").waitFor({ state: "detached" });
  });

  it("is made by keys alone: the sequence is found, forked and ended", async () => {
    for (const id of [60, 61, 62]) await begin(served.url, id, 3);
    const { page } = await browser.open(served.url, LIST);
    await findByKeys(page, "62");
    await forkByKeys(page, "63");
    expect(await step(served.url, 63, 100)).toBe(101);

    await page.getByRole("button", { name: "End", exact: true }).focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter"); // keeps
    await page.keyboard.press("Enter"); // asks again, since the focus has come back
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await heading(page, "Sequences");
  });
});

inBrowser("ids of any text", () => {
  it("are shown as text, and lead to their sequence", async () => {
    const ids = ['<img src=x onerror="alert(1)">', "a/b?c#d%20", "18446744073709551615", "‮rtl"];
    for (const id of ids) await begin(served.url, id, 1, "chain");
    const { page } = await browser.open(served.url, "#/sequences/chain?q=%3Cimg");
    await page.getByRole("link", { name: ids[0] ?? "", exact: true }).waitFor();
    expect(await page.locator("main img").count()).toBe(0);
    for (const id of ids) {
      await page.goto(`${served.url}/console/#/sequences/chain`);
      await page.getByRole("link", { name: id, exact: true }).click();
      await heading(page, `Sequence ${id}`);
      await steps(page).first().waitFor();
    }
  });

  it("of 64 bits are not rounded", async () => {
    const { page } = await browser.open(served.url, LIST);
    await page.route("**/sequences?limit=*", (route) =>
      route.fulfill({ contentType: "application/json", body: `{"sequences":[${entry("18446744073709551614")}]}` }),
    );
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.locator("[data-id='18446744073709551614']").waitFor();
  });
});

const entry = (id: string | number) =>
  `{"sequence_id":${id},"state":"busy","step":1,"waiting":0,"last_step_at":null,"idle_deadline":null,"worker":null,"version":"1","state_bytes":4,"checkpoints":[1]}`;

inBrowser("ten thousand sequences", () => {
  it("are scrolled with at most 200 rows in the document, and the gateway searches all", async () => {
    const { page } = await browser.open(served.url, "#/fleet");
    await page.route("**/sequences?limit=*", (route) => {
      const { searchParams: query } = new URL(route.request().url());
      const [from, prefix] = [Number(query.get("after") ?? 0), query.get("prefix")];
      // The list ends before the sequence that the search finds.
      if (prefix !== null) {
        return route.fulfill({ contentType: "application/json", body: `{"sequences":[${entry(`${prefix}42`)}]}` });
      }
      const entries = Array.from({ length: 1_000 }, (_, i) => entry(from + i));
      const next = from + 1_000 < 10_000 ? `,"next":"${from + 1_000}"` : "";
      return route.fulfill({ contentType: "application/json", body: `{"sequences":[${entries.join()}]${next}}` });
    });
    await page.goto(`${served.url}/console/${LIST}`);
    const grid = page.getByRole("grid", { name: "Sequences" });
    await page.locator("[data-id='0']").waitFor();
    expect(await grid.getAttribute("aria-rowcount")).toBe("10001");
    for (const share of [0.25, 0.5, 1]) {
      await page.evaluate(`(() => {
        const rows = document.querySelector(".rows");
        rows.scrollTop = rows.scrollHeight * ${share};
      })()`);
      await page.locator(`[data-id='${Math.min(9_999, 10_000 * share)}']`).waitFor();
      expect(await grid.getByRole("row").count()).toBeLessThanOrEqual(200);
    }
    await page.getByRole("searchbox").fill("7311");
    await page.locator("[data-id='731142']").waitFor();
    expect(await grid.getAttribute("aria-rowcount")).toBe("2");
    expect(new URL(page.url()).hash).toBe(`${LIST}?q=7311`);
  });
});
