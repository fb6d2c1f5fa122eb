/** The page of a jobs process agrees with the receivers of webhooks, with jobs and schedules. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { accepted, ended, simpleBody } from "../jobs/ask.js";
import { made } from "../schedules/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { Receiver } from "../support/jobs/webhooks.js";
import { readUntil } from "../support/until.js";
import { metricsOf, scrape, type Page } from "./scrape.js";

const SECRETS_KEY = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const running = useFleet({
  jobs: 1,
  models: ["simple"],
  direct: true,
  env: { BATON_METRICS_PORT: "0", BATON_SECRETS_KEY: SECRETS_KEY },
  jobsEnv: { BATON_WEBHOOK_RETRY_MS: "100" },
});
let receiver: Receiver;
beforeAll(async () => {
  receiver = await Receiver.start();
});
afterAll(async () => receiver.dispose());

const page = async (): Promise<Page> => {
  const [jobs] = running.fleet.jobs;
  return scrape(await metricsOf(jobs ?? expect.fail("there is a jobs process")));
};
const deliveries = (one: Page, state: string) => one.value(`baton_webhook_deliveries_total{state="${state}"}`);
const attempts = (one: Page, result: string) => one.value(`baton_webhook_attempts_total{result="${result}"}`);

describe("the page of a jobs process", () => {
  it("counts messages to receivers, and their attempts", async () => {
    receiver.on("/refuses", () => 500);
    const post = (body: object) => accepted(running.url, "simple", body);
    const webhook = (path: string) => ({ url: receiver.url(path), events: ["job.completed"] });
    await post({ infer: simpleBody(1), webhook: webhook("/takes") });
    await post({ infer: simpleBody(2), webhook: webhook("/refuses") });
    const after = await readUntil(page, (one) => deliveries(one, "delivered") + deliveries(one, "failed") >= 2);
    expect({
      delivered: deliveries(after, "delivered"),
      failed: deliveries(after, "failed"),
      taken: attempts(after, "2xx"),
      refused: attempts(after, "5xx"),
      timed: after.value("baton_webhook_attempt_duration_seconds_count"),
    }).toEqual({ delivered: 1, failed: 1, taken: 1, refused: 2, timed: 3 });
  });

  it("counts jobs that were due, and the times of schedules", async () => {
    const runAt = new Date(Date.now() + 1_000).toISOString();
    const { id } = await accepted(running.url, "simple", { infer: simpleBody(3), run_at: runAt });
    await made(running.url, "simple", { every: 1_000, limit: 2, job: { infer: simpleBody(4) } });
    expect((await ended(running.url, id)).state).toBe("completed");
    const made2 = 'baton_schedule_ticks_total{result="made"}';
    const after = await readUntil(page, (one) => one.value(made2) >= 2);
    expect({
      made: after.value(made2),
      skipped: after.value('baton_schedule_ticks_total{result="skipped"}'),
      refused: after.value('baton_schedule_ticks_total{result="refused"}'),
      late: after.value("baton_job_late_seconds_count"),
    }).toEqual({ made: 2, skipped: 0, refused: 0, late: 1 });
  });
});
