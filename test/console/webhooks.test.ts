/** The pages Webhooks and Deliveries: secrets that are shown once, and messages sent once more. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { accepted, ended, simpleBody } from "../jobs/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { Receiver, verified, WebhookClient, type WebhookView } from "../support/jobs/webhooks.js";
import { inBrowser, useBrowser } from "./browser.js";

const served = useFleet({ models: ["simple"], jobs: 1, direct: true });
const browser = useBrowser();
const client = () => new WebhookClient(served.url);
let receiver: Receiver;
beforeAll(async () => {
  receiver = await Receiver.start();
});
afterAll(() => receiver.dispose());

const row = (page: Page, name: string, id: string) => page.getByRole("grid", { name }).locator(`[data-id="${id}"]`);

async function make(path: string): Promise<Required<WebhookView>> {
  const body = { url: receiver.url(path), events: ["job.completed"] };
  return (await client().ask<Required<WebhookView>>("POST", "/webhooks", body)).body;
}

async function runJob(): Promise<string> {
  const { id } = await accepted(served.url, "simple", { infer: simpleBody(1) });
  await ended(served.url, id);
  return id;
}

/** Everything that the browser keeps beyond the page. */
const kept = (page: Page) =>
  page.evaluate<string>("JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])");

inBrowser("a webhook", () => {
  it("is made with a secret that the page shows once, and keeps nowhere", async () => {
    const { page } = await browser.open(served.url, "#/webhooks");
    await page.getByRole("button", { name: "Submit" }).click();
    await page.getByLabel("URL", { exact: true }).fill(receiver.url("/made"));
    await page.getByRole("checkbox", { name: "job.failed" }).uncheck();
    await page.getByRole("button", { name: "Submit webhook" }).click();
    const shown = page.getByLabel("New secret");
    const secret = (await shown.locator("code").textContent()) ?? "";
    expect(secret).toMatch(/^whsec_/);
    await runJob();
    await expect.poll(() => receiver.at("/made").length).toBe(1);
    const [received] = receiver.at("/made");
    if (received !== undefined) expect(verified(received, secret).type).toBe("job.completed");
    expect(await kept(page)).not.toContain(secret);
    await page.getByRole("grid", { name: "Webhooks" }).getByRole("link").first().click();
    await page.getByRole("heading", { level: 1, name: /^Webhook wh_/ }).waitFor();
    await page.goBack();
    await page.getByRole("grid", { name: "Webhooks" }).locator("[data-id]").first().waitFor();
    expect(await page.content()).not.toContain(secret);
  });

  it("with a forbidden address is refused in words", async () => {
    const { page } = await browser.open(served.url, "#/webhooks", { provoked: ["400"] });
    await page.getByRole("button", { name: "Submit" }).click();
    await page.getByLabel("URL", { exact: true }).fill("http://10.0.0.1:22/");
    await page.getByRole("button", { name: "Submit webhook" }).click();
    await page.getByRole("alert").getByText("url_not_allowed").waitFor();
  });

  it("gets a new secret after a question, and the former one signs for a while", async () => {
    const { id, secret } = await make("/turned");
    const { page } = await browser.open(served.url, `#/webhooks/${id}`);
    await page.getByRole("button", { name: "Rotate", exact: true }).click();
    await page.getByRole("button", { name: `Rotate ${id}` }).click();
    const shown = page.getByLabel("New secret");
    const rotated = (await shown.locator("code").textContent()) ?? "";
    expect(rotated).toMatch(/^whsec_/);
    expect(rotated).not.toBe(secret);
    await page.getByRole("rowheader", { name: "The former secret signs until" }).waitFor();
    await shown.getByRole("button", { name: "Close" }).click();
    expect(await page.content()).not.toContain(rotated);
  });

  it("is found, changed, paused, resumed and deleted", async () => {
    const { id } = await make("/found");
    await make("/other");
    const { page } = await browser.open(served.url, "#/webhooks?q=%2Ffound");
    await row(page, "Webhooks", id).waitFor();
    expect(await page.getByRole("grid").getAttribute("aria-rowcount")).toBe("2");
    await row(page, "Webhooks", id)
      .getByRole("button", { name: `Pause ${id}` })
      .click();
    await row(page, "Webhooks", id).getByText("paused", { exact: true }).waitFor();
    expect((await client().show(id)).enabled).toBe(false);
    await row(page, "Webhooks", id)
      .getByRole("button", { name: `Resume ${id}` })
      .click();
    await row(page, "Webhooks", id).getByText("enabled", { exact: true }).waitFor();

    await row(page, "Webhooks", id).getByRole("link").first().click();
    await page.getByRole("button", { name: "Change" }).click();
    await page.getByRole("checkbox", { name: "batch.failed" }).check();
    await page.getByRole("button", { name: "Save webhook" }).click();
    await page.getByText("job.completed, batch.failed").waitFor();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("button", { name: `Delete ${id}` }).click();
    await page.getByRole("heading", { level: 1, name: "Webhooks" }).waitFor();
    expect((await client().ask("GET", `/webhooks/${id}`)).status).toBe(404);
  });
});

inBrowser("a delivery", () => {
  it("is found by its job, shows its attempts, and is sent once more", async () => {
    const { id: webhook } = await make("/sent");
    const job = await runJob();
    await expect.poll(() => receiver.at("/sent").length).toBe(1);
    const { page } = await browser.open(served.url, `#/jobs/${job}`);
    await page.getByRole("link", { name: "Deliveries of this job" }).click();
    expect(new URL(page.url()).hash).toBe(`#/deliveries?job=${job}`);
    await page.getByLabel("Webhook, whole id").fill(webhook);
    const message = receiver.at("/sent")[0]?.id ?? "";
    await row(page, "Deliveries", message).getByText("delivered", { exact: true }).waitFor();
    await expect.poll(() => page.getByRole("grid").getAttribute("aria-rowcount")).toBe("2");
    await row(page, "Deliveries", message).getByText("204").click();
    await page.getByRole("heading", { level: 1, name: `Delivery ${message}` }).waitFor();
    const attempts = page.getByRole("grid", { name: "Attempts" });
    await attempts.getByText("204").waitFor();
    await page.getByRole("button", { name: "Replay" }).click();
    await expect.poll(() => receiver.at("/sent").length).toBe(2);
    await expect.poll(() => attempts.getAttribute("aria-rowcount")).toBe("3");
  });

  it("is sent once more together with others", async () => {
    await make("/both");
    await runJob();
    await runJob();
    await expect.poll(() => receiver.at("/both").length).toBe(2);
    const ids = receiver.at("/both").map(({ id }) => id);
    const { page } = await browser.open(served.url, "#/deliveries?state=delivered");
    for (const id of ids) await page.getByLabel(`Choose ${id}`).check();
    await page.getByRole("button", { name: "Replay chosen" }).click();
    await page.getByRole("button", { name: "Replay 2 deliveries" }).click();
    await page.getByText("Replay: 2 deliveries.").waitFor();
    await expect.poll(() => receiver.at("/both").length).toBe(4);
  });

  it("that is not there is told in words", async () => {
    const { page } = await browser.open(served.url, "#/deliveries/msg_none");
    await page.getByText("There is no delivery with this id.").waitFor();
  });
});
