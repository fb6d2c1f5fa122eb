/**
 * Every part that a batch needs is killed during the batch. Each line is a step of a sequence that
 * adds one, so a line that ran twice, or not at all, shows in every later sum.
 */
import OpenAI, { toFile } from "openai";
import { expect, it } from "vitest";
import { ended, linesOf } from "../../support/batches/batches.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { until } from "../../support/until.js";
import { messagesIn, objectsIn } from "../../files/objects.js";

const full = process.env["BATON_FULL"] === "1";
const SEQUENCES = 8;
const STEPS = full ? 400 : 60;
const LINES = SEQUENCES * STEPS;
const TIMEOUT_MS = 240_000;
const AWAY_MS = 8_000;
/** Bytes of an object in one message. */
const CHUNK_BYTES = 131_072;

const url = "/v2/models/accumulate/infer";
const served = useFleet({ workers: 2, jobs: 2, models: ["accumulate"] });

function step(sequence: number, value: number, parameters: object = {}) {
  const inputs = [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [value] }];
  return { parameters: { sequence_id: sequence, ...parameters }, inputs };
}

it(
  "no line is lost, none is doubled and none is run twice, whatever is killed",
  async () => {
    const { fleet } = served;
    const openai = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: "none", maxRetries: 8 });
    for (let sequence = 1; sequence <= SEQUENCES; sequence++) {
      const body = JSON.stringify(step(sequence, 0, { sequence_start: true }));
      expect((await fetch(served.url + url, { method: "POST", body })).status).toBe(200);
    }
    const lines = Array.from({ length: LINES }, (_, i) => {
      const sequence = 1 + (i % SEQUENCES);
      return JSON.stringify({ custom_id: `${i}`, method: "POST", url, body: step(sequence, 1) });
    });
    const file = await toFile(Buffer.from(lines.join("\n")), "steps.jsonl");
    const input = await openai.files.create({ file, purpose: "batch" });
    const endpoint = url as "/v1/completions";
    const { id } = await openai.batches.create({ input_file_id: input.id, endpoint, completion_window: "24h" });
    const once = { maxRetries: 0 };
    await expect(openai.files.delete(input.id, once)).rejects.toMatchObject({ status: 409, code: "file_in_use" });

    const done = async () => (await openai.batches.retrieve(id)).request_counts?.completed ?? 0;
    const [first, second] = fleet.jobs;
    const [gateway] = fleet.gateways;
    const [worker] = fleet.workers;
    const kills = [
      () => first?.restart(),
      () => worker?.restart(),
      () => second?.restart(),
      () => fleet.redis.kill().then(() => fleet.redis.restart()),
      // Long enough that several runs of the batch end because of NATS, one after the other.
      async () => {
        await fleet.nats.kill();
        await new Promise((resolve) => setTimeout(resolve, AWAY_MS));
        await fleet.nats.restart();
      },
      () => gateway?.member.restart(),
      () => Promise.all(fleet.jobs.map((one) => one.restart())),
    ];
    for (const [i, kill] of kills.entries()) {
      await until(async () => (await done()) >= (LINES * i) / (kills.length + 1), 60_000);
      await kill();
    }

    const batch = await ended(openai, id, 120_000);
    expect(batch).toMatchObject({
      status: "completed",
      request_counts: { total: LINES, completed: LINES, failed: 0 },
      error_file_id: null,
    });
    const output = linesOf(await (await openai.files.content(batch.output_file_id ?? "")).text());
    expect(output.map((line) => Number(line.custom_id)).sort((a, b) => a - b)).toEqual(lines.map((_, i) => i));
    const sums = Array.from({ length: SEQUENCES }, (): number[] => []);
    for (const { custom_id: line, response } of output) {
      const { outputs = [] } = (response?.body ?? {}) as { outputs?: { name: string; data: number[] }[] };
      sums[Number(line) % SEQUENCES]?.push(outputs.find(({ name }) => name === "OUTPUT")?.data[0] ?? Number.NaN);
    }
    const each = Array.from({ length: STEPS }, (_, i) => i + 1);
    for (const some of sums) expect(some.sort((a, b) => a - b)).toEqual(each);
    // The batch releases the file when it closes, which is after its end is visible.
    await until(async () => {
      const gone = await openai.files.delete(input.id).catch(() => ({ deleted: false }));
      return gone.deleted;
    });

    // No pieces are left, and no unfinished files, once their writers are gone.
    const redis = fleet.redis.connect();
    try {
      const unfinished = (await redis.keys("{files}:file:*")).filter(
        (key) => !key.endsWith(batch.output_file_id ?? ""),
      );
      for (const key of unfinished) await redis.zadd("{files}:due", "1", key.replace("{files}:file:", ""));
    } finally {
      redis.disconnect();
    }
    await until(async () => {
      const objects = await objectsIn(fleet.nats.url);
      const messages = objects.reduce((sum, { bytes }) => sum + Math.ceil(bytes / CHUNK_BYTES) + 1, 0);
      return objects.length === 1 && (await messagesIn(fleet.nats.url)) === messages;
    });
  },
  TIMEOUT_MS,
);
