/** Bad input in the console: names, tokens and errors that are markup are shown as text. */
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { accepted, simpleBody } from "../jobs/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { inBrowser, useBrowser } from "./browser.js";
import { begin } from "./steps.js";

const MARKUP = '<img src="x" onerror="document.title = \'run\'">';

const served = useFleet({ models: ["accumulate", "simple"], jobs: 1, direct: true });
const browser = useBrowser();

/** Answers for the gateway, whose checks let no such name in. */
async function answer(page: Page, path: string, body: object | string, status = 200): Promise<void> {
  const isEvents = typeof body === "string";
  await page.route(`**${path}`, (route) =>
    route.fulfill({
      status,
      contentType: isEvents ? "text/event-stream" : "application/json",
      headers: { "x-request-id": "11111111-1111-1111-1111-111111111111" },
      body: isEvents ? body : JSON.stringify(body),
    }),
  );
}

async function expectText(page: Page): Promise<void> {
  await page.getByText(MARKUP).first().waitFor();
  expect(await page.locator("main img").count()).toBe(0);
  expect(await page.title()).not.toBe("run");
}

inBrowser("markup is shown as text", () => {
  it("in names of processes and models, warnings and reasons", async () => {
    const { page } = await browser.open(served.url, "#/nowhere");
    const fleet = await (await fetch(`${served.url}/v2/fleet`)).text();
    const failed = [{ name: MARKUP, version: "1", reason: MARKUP }];
    const { workers, models, ...others } = JSON.parse(fleet) as { workers: object[]; models: object[] };
    const hostile = {
      ...others,
      workers: workers.map((worker) => ({ ...worker, name: MARKUP, host: MARKUP, failed })),
      models: models.map((model) => ({ ...model, name: MARKUP, version: MARKUP, warnings: [MARKUP] })),
    };
    await answer(page, "/v2/fleet", hostile);
    await answer(page, "/v2/fleet/events", `event: snapshot\ndata: ${JSON.stringify(hostile)}\n\n`);
    await answer(page, "/v2/models/*", { name: MARKUP, inputs: [], outputs: [] });
    await answer(page, "/v2/models/*/config", { name: MARKUP });
    const dead = { id: "d1", model: MARKUP, reason: MARKUP, runs: 1, set_aside_at: null, bytes: 1, job: null };
    const ids = { sequence_id: MARKUP, step: 1, request_id: MARKUP };
    await answer(page, "/v2/dead*", { data: [{ ...dead, ...ids }], has_more: false });
    for (const hash of [
      "#/fleet",
      "#/dead",
      "#/models",
      `#/models/${encodeURIComponent(MARKUP)}`,
      "#/try",
      "#/sequences",
    ]) {
      await page.goto(`${served.url}/console/${hash}`);
      await expectText(page);
    }
  });

  it("in events of the fleet", async () => {
    const { page } = await browser.open(served.url, "#/nowhere");
    const events = [
      { event: "worker.joined", data: { worker: MARKUP, host: MARKUP } },
      { event: MARKUP, data: { text: MARKUP } },
    ];
    const lines = events.map(({ event, data }) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    await answer(page, "/v2/fleet/events", lines.join(""));
    await page.goto(`${served.url}/console/#/fleet`);
    await page.getByRole("log", { name: "Events" }).getByText(`Worker ${MARKUP} (${MARKUP}) has joined`).waitFor();
    await expectText(page);
  });

  it("in the label of a job", async () => {
    const body = { infer: simpleBody(1), labels: { kind: MARKUP } };
    const { id } = await accepted(served.url, "simple", body);
    const { page } = await browser.open(served.url, "#/jobs");
    await page.locator(`[data-id='${id}']`).waitFor();
    await expectText(page);
    await page.goto(`${served.url}/console/#/jobs/${id}`);
    await expectText(page);
  });

  it("in the tokens of a stream, and in its error", async () => {
    const { page } = await browser.open(served.url, "#/nowhere");
    await answer(page, "/v2/requests/r1", {
      id: "r1",
      model_name: MARKUP,
      model_version: "1",
      state: "running",
      subject: "s",
      admitted_at: null,
      began_at: null,
      ended_at: null,
    });
    const record = { index: 0, choices: [{ index: 0, text: MARKUP }], final: true, reason: "error" };
    const error = { code: "internal", message: MARKUP };
    await answer(page, "/v2/requests/r1/events", `data: ${JSON.stringify({ ...record, error })}\n\n`);
    await page.goto(`${served.url}/console/#/streams/r1`);
    await page.getByRole("log", { name: "Text" }).getByText(MARKUP).waitFor();
    await page.locator(".notice").getByText(MARKUP).waitFor();
    await expectText(page);
  });

  it("in a refusal, beside its code and request", async () => {
    await begin(served.url, 1, 1);
    const { page } = await browser.open(served.url, "#/sequences/accumulate/1", { provoked: ["400"] });
    await answer(page, "/v2/models/accumulate/sequences/1/fork", { error: MARKUP, code: MARKUP }, 400);
    await page.getByLabel(/^New sequence id/).fill("2");
    await page.getByRole("button", { name: "Fork" }).click();
    const failure = page.getByRole("alert").filter({ hasText: "Fork 1 failed." });
    await failure.getByText("(request 11111111-1111-1111-1111-111111111111)").waitFor();
    expect(await failure.locator("code").first().textContent()).toBe(MARKUP);
    await expectText(page);
  });

  it("in an address, which names no page", async () => {
    const { page } = await browser.open(served.url, `#/${encodeURIComponent(MARKUP)}/${encodeURIComponent(MARKUP)}`);
    await page.getByRole("heading", { level: 1, name: "No such page" }).waitFor();
    await expectText(page);
  });
});
