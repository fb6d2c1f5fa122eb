/**
 * Batches that a client cancels, that expire, or that wait behind other requests; and the tenants
 * of batches.
 */
import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ended, inferLine, linesOf } from "../support/batches/batches.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { Receiver, verified, WebhookClient } from "../support/jobs/webhooks.js";
import { readLoads } from "#shared/queue/pieces/load.js";
import { readUntil, until } from "../support/until.js";
import { accepted, ask } from "../jobs/ask.js";

const TIMEOUT_MS = 120_000;
const LINES = 300;
/** Lines under way: twice the two batches of eight that one worker has at once. */
const MOST_LINES = 32;
const endpoint = "/v2/models/simple/infer" as "/v1/completions";

const served = useFleet({ jobs: 1, models: ["simple"], env: { BATON_TENANT_HEADER: "x-tenant", BATON_BUCKETS: "1" } });

const clientOf = (tenant: string) =>
  new OpenAI({
    baseURL: `${served.url}/v1`,
    apiKey: "none",
    maxRetries: 0,
    defaultHeaders: { "x-tenant": tenant },
  });

async function begin(openai: OpenAI, lines: number, window = "24h"): Promise<OpenAI.Batch> {
  const text = Array.from({ length: lines }, (_, i) => JSON.stringify(inferLine(i))).join("\n");
  const file = await openai.files.create({ file: await toFile(Buffer.from(text), "lines.jsonl"), purpose: "batch" });
  return openai.batches.create({ input_file_id: file.id, endpoint, completion_window: window as "24h" });
}

/** Keeps the worker away meanwhile, so that admitted requests stay in the queue. */
async function whileHeld(act: () => Promise<void>): Promise<void> {
  const [worker] = served.fleet.workers;
  await worker?.kill();
  try {
    await act();
  } finally {
    await worker?.start();
  }
}

describe("a batch", () => {
  let blue: OpenAI;
  let red: OpenAI;
  let receiver: Receiver;
  beforeAll(async () => {
    blue = clientOf("blue");
    red = clientOf("red");
    receiver = await Receiver.start();
  });
  afterAll(() => receiver.dispose());
  const statusOf = async ({ id }: OpenAI.Batch) => (await blue.batches.retrieve(id)).status;
  const blueHeaders = { "x-tenant": "blue" };
  /** Submits a job of this priority, and counts the requests ahead. */
  const placeOf = async (priority: number) => {
    const { id } = await accepted(served.url, "simple", { infer: inferLine(0).body, priority }, blueHeaders);
    const { body } = await ask(`${served.url}/v2/jobs/${id}`, { headers: blueHeaders });
    await ask(`${served.url}/v2/jobs/${id}`, { method: "DELETE", headers: blueHeaders });
    return body.position ?? -1;
  };

  it(
    "is nobody else's",
    async () => {
      const batch = await begin(blue, 1);
      await expect(red.batches.retrieve(batch.id)).rejects.toMatchObject({ status: 404 });
      await expect(red.batches.cancel(batch.id)).rejects.toMatchObject({ status: 404 });
      expect((await red.batches.list()).data).toEqual([]);
      const taken = red.batches.create({ input_file_id: batch.input_file_id, endpoint, completion_window: "24h" });
      await expect(taken).rejects.toMatchObject({ status: 400 });
      const { output_file_id: output } = await ended(blue, batch.id);
      await expect(red.files.content(output ?? "")).rejects.toMatchObject({ status: 404 });
      expect((await blue.batches.list()).data.map(({ id }) => id)).toEqual([batch.id]);
    },
    TIMEOUT_MS,
  );

  it(
    "waits behind what comes later and has a client that waits",
    async () => {
      let batch: OpenAI.Batch | undefined;
      await whileHeld(async () => {
        // A worker takes this many requests at once, in no order.
        const job = { infer: inferLine(0).body };
        for (let i = 0; i < MOST_LINES; i++) await accepted(served.url, "simple", job, blueHeaders);
        batch = await begin(blue, LINES);
        // How many lines wait is open: one refusal by a slow Redis makes a batch send fewer, until
        // answers come.
        const last = await readUntil(
          () => placeOf(9),
          (place) => place > MOST_LINES,
        );
        expect(last).toBeGreaterThan(MOST_LINES);
        expect(await placeOf(1)).toBeLessThan(last);
        expect(await placeOf(8)).toBeLessThan(last);
        expect(await statusOf(batch)).toBe("in_progress");
      });
      const { request_counts: counts } = await ended(blue, batch?.id ?? "");
      expect(counts).toEqual({ total: LINES, completed: LINES, failed: 0 });
    },
    TIMEOUT_MS,
  );

  it(
    "has fewer lines under way while clients wait for the same model",
    async () => {
      const { redis } = served;
      const underWay = async () => (await readLoads(redis, undefined, ["m:simple"]))[0]?.requests ?? 0;
      const batch = await begin(blue, 100 * LINES);
      try {
        await until(async () => (await underWay()) > MOST_LINES / 2);
        let few = 0;
        await until(async () => {
          const body = JSON.stringify(inferLine(0).body);
          const headers = { ...blueHeaders, "content-type": "application/json" };
          expect((await ask(served.url + endpoint, { method: "POST", headers, body })).status).toBe(200);
          few = (await underWay()) <= MOST_LINES / 4 ? few + 1 : 0;
          return few === 20;
        });
        expect(await statusOf(batch)).toBe("in_progress");
        await until(async () => (await underWay()) > MOST_LINES / 2);
      } finally {
        await blue.batches.cancel(batch.id);
      }
      await ended(blue, batch.id);
    },
    TIMEOUT_MS,
  );

  it(
    "is cancelled: what was done is in its files, and the rest is not run",
    async () => {
      const webhooks = new WebhookClient(served.url, blueHeaders);
      const wanted = { url: receiver.url("/cancelled"), events: ["batch.cancelled"] };
      const { secret } = (await webhooks.ask<{ secret: string }>("POST", "/webhooks", wanted)).body;
      const batch = await begin(blue, 20 * LINES);
      await until(async () => ((await blue.batches.retrieve(batch.id)).request_counts?.completed ?? 0) > 0);
      expect((await blue.batches.cancel(batch.id)).status).toBe("cancelling");
      expect(["cancelling", "cancelled"]).toContain((await blue.batches.cancel(batch.id)).status);
      const over = await ended(blue, batch.id);
      expect(over.status).toBe("cancelled");
      const { completed = 0, total } = over.request_counts ?? {};
      expect(total).toBe(20 * LINES);
      expect(completed).toBeGreaterThan(0);
      expect(completed).toBeLessThan(20 * LINES);
      const output = linesOf(await (await blue.files.content(over.output_file_id ?? "")).text());
      expect(new Set(output.map((line) => line.custom_id)).size).toBe(completed);
      expect(output).toHaveLength(completed);

      await until(() => receiver.at("/cancelled").length > 0);
      const [told] = receiver.at("/cancelled");
      if (told === undefined) throw new Error("nobody was told");
      expect(verified(told, secret)).toMatchObject({
        type: "batch.cancelled",
        data: { id: batch.id, object: "batch" },
      });
      expect(receiver.at("/cancelled")).toHaveLength(1);
    },
    TIMEOUT_MS,
  );

  it(
    "expires: each line that was not run in time says so",
    async () => {
      await whileHeld(async () => {
        const batch = await begin(blue, LINES, "1s");
        const over = await ended(blue, batch.id);
        expect(over).toMatchObject({ status: "expired", output_file_id: null });
        expect(over.request_counts).toEqual({ total: LINES, completed: 0, failed: LINES });
        const errors = linesOf(await (await blue.files.content(over.error_file_id ?? "")).text());
        expect(errors.map(({ error }) => error?.code)).toEqual(Array.from({ length: LINES }, () => "batch_expired"));
        expect(new Set(errors.map((line) => line.custom_id)).size).toBe(LINES);
      });
    },
    TIMEOUT_MS,
  );
});
