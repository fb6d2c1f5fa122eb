/** The page Batches: a file of requests is uploaded, watched, read and cancelled. */
import { readFile } from "node:fs/promises";
import OpenAI, { toFile } from "openai";
import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { ended, inferLine, linesOf } from "../support/batches/batches.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { inBrowser, useBrowser } from "./browser.js";

const served = useFleet({ models: ["simple"], jobs: 1, direct: true });
const browser = useBrowser();

const ENDPOINT = "/v2/models/simple/infer";
const openai = () => new OpenAI({ apiKey: "none", baseURL: `${served.url}/v1` });
const row = (page: Page, id: string) => page.getByRole("grid", { name: "Batches" }).locator(`[data-id="${id}"]`);
const fileOf = (lines: readonly string[]) => Buffer.from(lines.join("\n"));
const lineOf = (i: number) => JSON.stringify(inferLine(i));

async function begin(lines: readonly string[], metadata: Record<string, string> = {}): Promise<string> {
  const file = await openai().files.create({ file: await toFile(fileOf(lines), "in.jsonl"), purpose: "batch" });
  const order = { input_file_id: file.id, endpoint: ENDPOINT, completion_window: "24h", metadata };
  return (await openai().batches.create(order as OpenAI.BatchCreateParams)).id;
}

inBrowser("a batch", () => {
  it("is submitted as a file, which says its path itself, and its answers are read and stored", async () => {
    const { page } = await browser.open(served.url, "#/batches");
    await page.getByRole("button", { name: "Submit" }).click();
    const lines = [...Array.from({ length: 300 }, (_, i) => lineOf(i)), "<b>no JSON</b>"];
    const file = { name: "in.jsonl", mimeType: "application/jsonl", buffer: fileOf(lines) };
    await page.getByLabel(/^File/).setInputFiles(file);
    await expect.poll(() => page.getByLabel(/^Path/).inputValue()).toBe(ENDPOINT);
    const begun = page.waitForRequest(
      (request) => request.url().endsWith("/v1/batches") && request.method() === "POST",
    );
    await page.getByRole("button", { name: "Submit batch" }).click();
    expect((await begun).headers()["idempotency-key"]).toMatch(/^[0-9a-f-]{36}$/);
    await page.getByRole("heading", { level: 1, name: /^Batch batch_/ }).waitFor();
    await page.getByRole("definition").filter({ hasText: "301 of 301" }).waitFor();
    await page.getByRole("rowheader", { name: "Completed" }).waitFor();

    await page.getByRole("button", { name: "Show errors" }).click();
    await page.locator("pre").getByText("invalid_json").waitFor();
    await page.getByRole("button", { name: "Show output" }).click();
    await page.getByText("The first 64 KiB are shown.").waitFor();
    expect((await page.locator("pre").first().textContent())?.length).toBe(65_536);
    const [stored] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download output" }).click(),
    ]);
    expect(linesOf(await readFile(await stored.path(), "utf8"))).toHaveLength(300);
  });

  it("is found by its metadata, and cancelled after a question", async () => {
    const { fleet } = served;
    for (const worker of fleet.workers) worker.freeze();
    onTestFinished(() => {
      for (const worker of fleet.workers) worker.thaw();
    });
    const id = await begin([lineOf(1)], { team: "blue" });
    const { page } = await browser.open(served.url, "#/batches?q=team%3Ablue");
    await row(page, id).getByText("in_progress").waitFor();
    expect(await page.getByRole("grid").getAttribute("aria-rowcount")).toBe("2");
    await page.getByLabel("State").selectOption("completed");
    await page.getByText("No batches fit.").waitFor();
    await page.getByLabel("State").selectOption("any");
    await row(page, id).getByRole("button", { name: "Cancel" }).click();
    await row(page, id)
      .getByRole("button", { name: `Cancel ${id}` })
      .click();
    await row(page, id)
      .getByText(/^cancell(ing|ed)$/)
      .waitFor();
    for (const worker of fleet.workers) worker.thaw();
    expect((await ended(openai(), id)).status).toBe("cancelled");
  });

  it("that has failed shows its faults", async () => {
    const id = await begin([""]);
    await ended(openai(), id);
    const { page } = await browser.open(served.url, `#/batches/${id}`);
    await page.getByRole("grid", { name: "Faults" }).locator("[data-id]").first().waitFor();
    await page.getByRole("definition").filter({ hasText: "failed" }).waitFor();
  });
});
