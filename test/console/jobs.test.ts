/** The page Jobs: jobs are found, submitted, cancelled and run again. */
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { accepted, ask, ended, simpleBody } from "../jobs/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { inBrowser, useBrowser } from "./browser.js";

const served = useFleet({ models: ["simple", "picky", "echo-bytes"], jobs: 1, direct: true });
const browser = useBrowser();

const HOUR = 3_600_000;
/** A body that the model itself refuses. */
const failing = { inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [1_000_000] }] };
const grid = (page: Page) => page.getByRole("grid", { name: "Jobs" });
const row = (page: Page, id: string) => grid(page).locator(`[data-id="${id}"]`);
const stateOf = async (id: string) => (await ask(`${served.url}/v2/jobs/${id}`)).body.state;
const rowsOf = (page: Page) => grid(page).locator("[data-id]").count();

inBrowser("the list of jobs", () => {
  it("is filtered by the gateway, and its filters are in the address", async () => {
    const labels = { team: '<b onclick="x">blue' };
    const later = await accepted(served.url, "simple", { infer: simpleBody(1), delay: HOUR, labels });
    const done = await accepted(served.url, "simple", { infer: simpleBody(2) });
    await ended(served.url, done.id);
    const { page, asked } = await browser.open(served.url, "#/jobs?state=scheduled");
    await row(page, later.id).getByText(`team:${labels.team}`).waitFor();
    expect(await row(page, done.id).count()).toBe(0);
    expect(await grid(page).getAttribute("aria-rowcount")).toBe("2");
    expect(await row(page, later.id).getAttribute("aria-rowindex")).toBe("2");

    await page.getByLabel("State").selectOption("completed");
    await row(page, done.id).waitFor();
    await page.getByLabel("State").selectOption("any");
    // Half a label is not asked for, since the gateway would refuse it.
    await page.getByLabel(/^Label/).fill("team");
    await row(page, done.id).waitFor();
    await page.getByLabel(/^Label/).fill(`team:${labels.team}`);
    await row(page, done.id).waitFor({ state: "detached" });
    await row(page, later.id).waitFor();
    await page.reload();
    await row(page, later.id).waitFor();
    expect(await rowsOf(page)).toBe(1);
    await page.getByLabel("Model, whole name").fill("picky");
    await page.getByText("No jobs fit.").waitFor();
    expect(asked.filter(({ what }) => what.startsWith("GET /v2/jobs/"))).toEqual([]);
  });

  it("leads to older jobs, and back", async () => {
    for (let i = 0; i < 101; i++) {
      await accepted(served.url, "simple", { infer: simpleBody(1), delay: HOUR, labels: { many: "yes" } });
    }
    const { page } = await browser.open(served.url, "#/jobs?label=many%3Ayes");
    await page.getByRole("link", { name: "Older" }).click();
    await page.getByText("Older: 1 job", { exact: true }).waitFor();
    expect(await rowsOf(page)).toBe(1);
    await page.getByRole("link", { name: "Newest" }).click();
    await page.getByText("The newest: 100 jobs").waitFor();
  });

  it("cancels several jobs at once: the count first, and one summary after", async () => {
    const jobs = [];
    for (const _ of [1, 2, 3]) {
      jobs.push(await accepted(served.url, "simple", { infer: simpleBody(1), delay: HOUR, labels: { at: "once" } }));
    }
    const [first, second, third] = jobs.map(({ id }) => id);
    const { page } = await browser.open(served.url, "#/jobs?label=at%3Aonce", { provoked: ["409"] });
    await row(page, first ?? "").waitFor();
    await page.getByLabel(`Choose ${first}`).check();
    await page.getByLabel(`Choose ${second}`).check();
    await page.getByRole("button", { name: "Cancel chosen" }).click();
    const keys: (string | undefined)[] = [];
    page.on("request", (request) => {
      if (request.method() === "DELETE") keys.push(request.headers()["idempotency-key"]);
    });
    await page.getByRole("button", { name: "Cancel 2 jobs" }).click();
    await page.getByText("Cancel: 2 jobs.").waitFor();
    expect(new Set(keys).size).toBe(2);
    expect(await Promise.all([first, second, third].map((id) => stateOf(id ?? "")))).toEqual([
      "cancelled",
      "cancelled",
      "scheduled",
    ]);

    // A job that ends between the look and the change is in the summary, with its reason.
    await page.getByLabel(`Choose ${third}`).check();
    await page.route(`**/v2/jobs/${third}`, (route) => {
      const body = JSON.stringify({ error: "the request has ended", code: "already_ended", state: "failed" });
      return route.fulfill({ status: 409, contentType: "application/json", body });
    });
    await page.getByRole("button", { name: "Cancel chosen" }).click();
    await page.getByRole("button", { name: "Cancel 1 job", exact: true }).click();
    await page.getByText("Cancel: 0 of 1 job. Failed: 1 × already_ended – the request has ended.").waitFor();
    await page.getByLabel("Summary").getByRole("button", { name: "Close" }).click();
    expect(await page.getByLabel("Summary").count()).toBe(0);
  });
});

inBrowser("a job", () => {
  it("is submitted, and shows its times and its result", async () => {
    const { page } = await browser.open(served.url, "#/fleet");
    for (const key of ["g", "j"]) await page.keyboard.press(key);
    await page.getByRole("button", { name: "Submit" }).click();
    await page.getByLabel("Model to run").selectOption("simple");
    await expect.poll(() => page.getByLabel(/^The job/).inputValue()).toContain("INPUT1");
    await page.getByLabel(/^The job/).fill(JSON.stringify({ infer: simpleBody(4), labels: { of: "console" } }));
    const posted = page.waitForRequest((request) => request.method() === "POST");
    await page.getByRole("button", { name: "Submit job" }).click();
    expect((await posted).headers()["idempotency-key"]).toMatch(/^[0-9a-f-]{36}$/);
    await page.getByRole("heading", { level: 1, name: /^Job job_/ }).waitFor();
    await page.getByText('"OUTPUT0"').waitFor();
    for (const name of ["Submitted", "Queued", "Began", "Ended", "Result kept until", "Ran"]) {
      await page.getByRole("rowheader", { name, exact: true }).waitFor();
    }
    await page.getByText("of:console").waitFor();
  });

  it("with a webhook of its own is submitted, and shows the secret once", async () => {
    const { page } = await browser.open(served.url, "#/jobs");
    await page.getByRole("button", { name: "Submit" }).click();
    await page.getByLabel("Model to run").selectOption("simple");
    await expect.poll(() => page.getByLabel(/^The job/).inputValue()).toContain("INPUT1");
    const webhook = { url: "http://127.0.0.1:9/none", events: ["job.completed"] };
    await page.getByLabel(/^The job/).fill(JSON.stringify({ infer: simpleBody(4), delay: HOUR, webhook }));
    await page.getByRole("button", { name: "Submit job" }).click();
    const secret = (await page.getByLabel("New secret").locator("code").textContent()) ?? "";
    expect(secret).toMatch(/^whsec_/);
    await page.getByLabel("New secret").getByRole("button", { name: "Close" }).click();
    await page.getByRole("heading", { level: 1, name: /^Job job_/ }).waitFor();
    expect(await page.content()).not.toContain(secret);
  });

  it("is found and cancelled by keys alone", async () => {
    const labels = { by: "keys" };
    const { id: older } = await accepted(served.url, "simple", { infer: simpleBody(1), delay: HOUR, labels });
    const { id: newer } = await accepted(served.url, "simple", { infer: simpleBody(1), delay: HOUR, labels });
    const { page } = await browser.open(served.url, "#/jobs?label=by%3Akeys");
    await row(page, newer).waitFor();
    const focused = () => page.evaluate<string>("document.activeElement.textContent");
    for (const key of ["j", "j"]) await page.keyboard.press(key);
    await expect.poll(() => page.evaluate("document.activeElement.dataset.id")).toBe(older);
    await page.keyboard.press(".");
    await expect.poll(focused).toBe("Cancel");
    await page.keyboard.press("Enter");
    await expect.poll(focused).toBe("Keep");
    await page.keyboard.press("Shift+Tab");
    await expect.poll(focused).toBe(`Cancel ${older}`);
    await page.keyboard.press("Enter");
    await row(page, older).getByText("cancelled", { exact: true }).waitFor();
    expect(await stateOf(newer)).toBe("scheduled");
  });

  it("is cancelled after a question, with a button that names the job", async () => {
    const { id } = await accepted(served.url, "simple", { infer: simpleBody(1), delay: HOUR });
    const { page } = await browser.open(served.url, "#/jobs");
    await row(page, id).getByRole("button", { name: "Cancel" }).click();
    await row(page, id).getByRole("button", { name: "Keep" }).click();
    expect(await stateOf(id)).toBe("scheduled");
    await row(page, id).getByRole("link").click();
    await page.getByRole("heading", { level: 1, name: `Job ${id}` }).waitFor();
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.getByRole("button", { name: `Cancel ${id}` }).click();
    await page.getByRole("definition").filter({ hasText: "cancelled" }).waitFor();
    expect(await stateOf(id)).toBe("cancelled");
  });

  it("that has failed says why, and runs again", async () => {
    const { id } = await accepted(served.url, "picky", { infer: failing });
    const { ended_at: before } = await ended(served.url, id);
    const { page } = await browser.open(served.url, `#/jobs/${id}`);
    await page.getByText("model_error").waitFor();
    await page.getByRole("button", { name: "Retry" }).click();
    await expect.poll(async () => (await ended(served.url, id)).ended_at).not.toBe(before);
  });

  it("of an unknown id is refused in words", async () => {
    const { page } = await browser.open(served.url, "#/jobs/job_none", { provoked: ["404"] });
    await page.getByRole("alert").getByText("unknown_job").waitFor();
  });

  it("has a long result, of which the page shows the beginning and stores the whole", async () => {
    const data = [`<i>${"a".repeat(100_000)}`];
    const inputs = [{ name: "INPUT", datatype: "BYTES", shape: [1, 1], data }];
    const { id } = await accepted(served.url, "echo-bytes", { infer: { inputs } });
    expect(await ended(served.url, id)).toMatchObject({ state: "completed", result: null });
    const { page } = await browser.open(served.url, `#/jobs/${id}`);
    await page.getByRole("button", { name: "Show result" }).click();
    await page.getByText("The first 64 KiB are shown.").waitFor();
    expect((await page.locator("main pre").textContent())?.length).toBe(65_536);
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download" }).click(),
    ]);
    expect(await readFile(await file.path(), "utf8")).toContain(data[0]);
  });
});
