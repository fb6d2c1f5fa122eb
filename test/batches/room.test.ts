/** A batch whose answers find no more room keeps the answers that came before. */
import OpenAI, { toFile } from "openai";
import { expect, it } from "vitest";
import { ended, inferLine, linesOf } from "../support/batches/batches.js";
import { useFleet } from "../support/fleet/use-fleet.js";

const LINES = 2_000;
const endpoint = "/v2/models/simple/infer" as "/v1/completions";

const served = useFleet({
  jobs: 1,
  models: ["simple"],
  direct: true,
  // The gateways lack this limit, so they take the input. All answers would have 1.2 MB.
  jobsEnv: { BATON_FILE_BYTES: String(500_000) },
});

it("fails, with the files of what was done", { timeout: 120_000 }, async () => {
  const openai = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: "none", maxRetries: 0 });
  const text = Array.from({ length: LINES }, (_, i) => JSON.stringify(inferLine(i))).join("\n");
  const input = await openai.files.create({ file: await toFile(Buffer.from(text), "lines.jsonl"), purpose: "batch" });
  const { id } = await openai.batches.create({ input_file_id: input.id, endpoint, completion_window: "24h" });
  const batch = await ended(openai, id);
  expect(batch).toMatchObject({ status: "failed", errors: { data: [{ code: "payload_too_large" }] } });
  const { completed = 0 } = batch.request_counts ?? {};
  expect(completed).toBeGreaterThan(0);
  const lines = linesOf(await (await openai.files.content(batch.output_file_id ?? "")).text());
  expect(lines.length).toBe(completed);
  expect(new Set(lines.map((line) => line.custom_id)).size).toBe(completed);
});
