/**
 * Files, batches and schedules over a Redis Cluster of 16 buckets, with their records at other
 * masters than the queue. Two jobs processes run several batches, and one process is killed. The
 * clocks of their hosts are two days ahead, but a batch expires by the clock of Redis.
 */
import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ended, inferLine, linesOf } from "../../support/batches/batches.js";
import { clusterStore } from "../../support/fleet/cluster-store.js";
import { startFleet, type Fleet } from "../../support/fleet/fleet.js";
import { Receiver, WebhookClient } from "../../support/jobs/webhooks.js";
import { until } from "../../support/until.js";
import { askFor, find, jobsOf, made } from "../../schedules/ask.js";

const BATCHES = 5;
const LINES = 120;
const endpoint = "/v2/models/simple/infer" as "/v1/completions";
const TWO_DAYS_AHEAD = "data:text/javascript,const now = Date.now; Date.now = () => now() + 172_800_000;";

let fleet: Fleet;
let receiver: Receiver;
beforeAll(async () => {
  const store = await clusterStore();
  receiver = await Receiver.start();
  const env = { BATON_BUCKETS: "16" };
  const flags = (member: string) => (member.startsWith("jobs") ? ["--import", TWO_DAYS_AHEAD] : []);
  fleet = await startFleet({ jobs: 2, models: ["simple"], store, env, flags });
  await fleet.whenServing(60_000);
}, 240_000);
afterAll(async () => {
  await fleet.dispose();
  await receiver.dispose();
});

it(
  "several batches are run by two processes, and their ends are told, beside a schedule",
  { timeout: 180_000 },
  async () => {
    const [url = ""] = fleet.urls;
    const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 8 });
    await new WebhookClient(url).ask("POST", "/webhooks", { url: receiver.url("/told"), events: ["batch.completed"] });
    const { id: schedule } = await made(url, "simple", { every: 1_000, job: { infer: inferLine(0).body } });
    const lines = Array.from({ length: LINES }, (_, i) => JSON.stringify(inferLine(i)));
    const file = await toFile(Buffer.from([...lines, "no JSON"].join("\n")), "lines.jsonl");
    const input = await openai.files.create({ file, purpose: "batch" });
    const batches = await Promise.all(
      Array.from({ length: BATCHES }, () =>
        openai.batches.create({ input_file_id: input.id, endpoint, completion_window: "24h" }),
      ),
    );
    const once = { maxRetries: 0 };
    await expect(openai.files.delete(input.id, once)).rejects.toMatchObject({ status: 409, code: "file_in_use" });
    await fleet.jobs[0]?.restart();
    for (const { id } of batches) {
      const over = await ended(openai, id, 120_000);
      expect(over).toMatchObject({
        status: "completed",
        request_counts: { total: LINES + 1, completed: LINES, failed: 1 },
      });
      const output = linesOf(await (await openai.files.content(over.output_file_id ?? "")).text());
      expect(output).toHaveLength(LINES);
      expect(new Set(output.map((line) => line.custom_id))).toEqual(new Set(lines.map((_, i) => `line-${i}`)));
      const errors = linesOf(await (await openai.files.content(over.error_file_id ?? "")).text());
      expect(errors).toMatchObject([{ error: { code: "invalid_json", line: LINES + 1 } }]);
    }
    await until(() => new Set(receiver.at("/told").map((told) => told.id)).size === BATCHES, 60_000);
    // The last batch releases the file when the batch closes, which is after its webhook.
    await until(async () => {
      const gone = await openai.files.delete(input.id, once).catch(() => ({ deleted: false }));
      return gone.deleted;
    });
    expect((await openai.files.list()).data).toHaveLength(2 * BATCHES);

    await until(async () => (await find(url, schedule)).runs >= 2, 60_000);
    expect((await askFor(url, `/schedules/${schedule}/pause`, { method: "POST" })).status).toBe(200);
    const ticks = async () => (await jobsOf(url, schedule)).map((one) => one.scheduled_for);
    await until(async () => (await find(url, schedule)).runs === (await ticks()).length);
    expect(new Set(await ticks()).size).toBe((await ticks()).length);
  },
);
