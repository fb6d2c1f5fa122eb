/** The page Dead letters: requests that ended their workers, and their jobs, which run again. */
import { expect, it } from "vitest";
import { POISON_INPUT } from "../fixtures/models/chain-reference.js";
import { accepted, ask, ended } from "../jobs/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { inBrowser, useBrowser } from "./browser.js";

const served = useFleet({
  workers: 2,
  models: ["pill"],
  direct: true,
  jobs: 1,
  workerEnv: { BATON_MAX_RUNS_ALONE: "1" },
});
const browser = useBrowser();

const infer = {
  parameters: { sequence_id: 1, sequence_start: true },
  inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [Number(POISON_INPUT)] }],
};

inBrowser("a request that was set aside", () => {
  it.skipIf(process.arch !== "x64")("is shown with its reason, and its job runs again", async () => {
    const job = await accepted(served.url, "pill", { infer });
    await ended(served.url, job.id);
    const { page } = await browser.open(served.url, "#/dead");
    const row = page.getByRole("grid", { name: "Dead letters" }).locator("[data-id]");
    await row.getByText("poison_request").waitFor();
    const before = await row.getAttribute("data-id");
    const posted = page.waitForRequest((request) => request.method() === "POST");
    await row.getByRole("button", { name: /^Retry / }).click();
    expect((await posted).headers()["idempotency-key"]).toMatch(/^[0-9a-f-]{36}$/);
    // The job's next request ends its worker, too, and is set aside in its turn.
    await expect.poll(() => row.getAttribute("data-id")).not.toBe(before);
    const { body } = await ask(`${served.url}/v2/jobs/${job.id}`);
    expect(body).toMatchObject({ state: "failed" });
  });
});
