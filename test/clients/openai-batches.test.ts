/** OpenAI's own client, unmodified, drives files and batches end to end. */
import OpenAI, { APIError, toFile } from "openai";
import { beforeAll, describe, expect, it } from "vitest";
import { ended, inferLine, linesOf } from "../support/batches/batches.js";
import { useFleet } from "../support/fleet/use-fleet.js";

const WAIT_MS = 90_000;

const served = useFleet({ jobs: 1, models: ["simple", "tale-gpt"] });

describe("OpenAI's client", () => {
  let openai: OpenAI;
  beforeAll(() => {
    openai = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: "none" });
  });
  const upload = async (text: string) =>
    (await openai.files.create({ file: await toFile(Buffer.from(text), "requests.jsonl"), purpose: "batch" })).id;
  const content = async (id: string | null | undefined) => linesOf(await (await openai.files.content(id ?? "")).text());

  it(
    "has a file of chats answered, each as the chat's own path does",
    async () => {
      const url = "/v1/chat/completions";
      const body = (seed: number) => ({
        model: "tale-gpt",
        messages: [{ role: "user" as const, content: "Tell a story." }],
        max_tokens: 8,
        seed,
      });
      const lines = [1, 2, 3].map((seed) => ({ custom_id: `chat-${seed}`, method: "POST", url, body: body(seed) }));
      const input = await upload(lines.map((line) => `${JSON.stringify(line)}\r\n`).join("\n"));
      const metadata = { team: "blue" };
      const made = await openai.batches.create({
        input_file_id: input,
        endpoint: url,
        completion_window: "24h",
        metadata,
      });
      expect(made).toMatchObject({ object: "batch", status: "validating", input_file_id: input, metadata });

      const batch = await ended(openai, made.id);
      expect(batch).toMatchObject({
        status: "completed",
        request_counts: { total: 3, completed: 3, failed: 0 },
        errors: null,
        error_file_id: null,
      });
      for (const time of ["in_progress_at", "finalizing_at", "completed_at"] as const) {
        expect(batch[time]).toBeGreaterThanOrEqual(made.created_at);
      }
      const output = await content(batch.output_file_id);
      expect(new Set(output.map((line) => line.custom_id))).toEqual(new Set(["chat-1", "chat-2", "chat-3"]));
      expect(output).toHaveLength(3);
      for (const { custom_id: id, response, error } of output) {
        const { choices, usage } = await openai.chat.completions.create(body(Number(id?.slice(-1))));
        expect(response).toMatchObject({ status_code: 200, body: { choices, usage } });
        expect(error).toBeNull();
      }
      expect((await openai.files.retrieve(batch.output_file_id ?? "")).purpose).toBe("batch_output");
      const list = [];
      for await (const one of openai.batches.list({ limit: 1 })) list.push(one.id);
      expect(list).toContain(made.id);
    },
    WAIT_MS,
  );

  it(
    "has a tensor model's requests answered, and reads by line what was wrong with the others",
    async () => {
      const url = "/v2/models/simple/infer";
      const good = (i: number) => JSON.stringify(inferLine(i));
      const changed = (i: number, change: object) => JSON.stringify({ ...inferLine(i), ...change });
      const file = [
        `\ufeff${good(0)}`,
        "{bad",
        "",
        changed(1, { custom_id: undefined }),
        good(0),
        changed(2, { method: "GET" }),
        changed(3, { url: "/v1/completions" }),
        changed(4, { body: 7 }),
        changed(5, { body: { inputs: [] } }),
        `{"custom_id":"long","x":"${"y".repeat(17 * 1024 * 1024)}"}`,
        good(6),
      ].join("\n");
      const made = await openai.batches.create({
        input_file_id: await upload(file),
        endpoint: url as "/v1/completions",
        completion_window: "24h",
      });
      const batch = await ended(openai, made.id);
      expect(batch).toMatchObject({ status: "completed", request_counts: { total: 10, completed: 2, failed: 8 } });
      const output = await content(batch.output_file_id);
      expect(new Set(output.map((line) => line.custom_id))).toEqual(new Set(["line-0", "line-6"]));
      expect(output).toHaveLength(2);
      for (const line of output) expect(line.response?.body).toMatchObject({ model_name: "simple" });

      const errors = await content(batch.error_file_id);
      const said = errors.map((line) => [line.error?.line ?? null, line.error?.code ?? line.response?.status_code]);
      expect(said.sort(([a], [b]) => Number(a) - Number(b))).toEqual([
        [null, 400],
        [2, "invalid_json"],
        [4, "missing_custom_id"],
        [5, "duplicate_custom_id"],
        [6, "invalid_method"],
        [7, "invalid_url"],
        [8, "invalid_body"],
        [10, "line_too_long"],
      ]);
    },
    WAIT_MS,
  );

  it("reads why a batch cannot be made, in OpenAI's words", async () => {
    const input = await upload("{}\n");
    const good = { input_file_id: input, endpoint: "/v1/completions", completion_window: "24h" } as const;
    const refused = (change: object) =>
      openai.batches.create({ ...good, ...change }).then(
        () => undefined,
        (error: unknown) => (error instanceof APIError ? [error.status, error.param] : error),
      );
    expect(await refused({ endpoint: "/v1/embeddings" })).toEqual([400, "endpoint"]);
    expect(await refused({ input_file_id: "file-none" })).toEqual([400, "input_file_id"]);
    expect(await refused({ completion_window: "tomorrow" })).toEqual([400, "completion_window"]);
    expect(await refused({ metadata: { a: 1 } })).toEqual([400, "metadata"]);
    expect(await refused({ output_expires_after: { anchor: "created_at", seconds: 3600 } })).toEqual([400, null]);
    await expect(openai.batches.retrieve("batch_none")).rejects.toMatchObject({ status: 404 });
    await expect(openai.batches.cancel("batch_none")).rejects.toMatchObject({ status: 404 });
  });

  it(
    "makes one batch of one key, and none of a key that was used for another",
    async () => {
      const input = await upload(`${JSON.stringify(inferLine(1))}\n`);
      const asked = {
        input_file_id: input,
        endpoint: "/v2/models/simple/infer" as "/v1/completions",
        completion_window: "24h" as const,
      };
      const options = { headers: { "Idempotency-Key": "one" } };
      const first = await openai.batches.create(asked, options);
      const { data: second, response } = await openai.batches.create(asked, options).withResponse();
      expect(second.id).toBe(first.id);
      expect(response.headers.get("idempotent-replayed")).toBe("true");
      await expect(openai.batches.create({ ...asked, metadata: { a: "b" } }, options)).rejects.toMatchObject({
        status: 422,
      });
      await ended(openai, first.id);
      expect((await openai.batches.create(asked, options)).id).toBe(first.id);
      await expect(openai.batches.cancel(first.id)).rejects.toMatchObject({ status: 409 });
    },
    WAIT_MS,
  );

  it(
    "is told of a file without requests that the batch has failed",
    async () => {
      const made = await openai.batches.create({
        input_file_id: await upload("\n\n"),
        endpoint: "/v1/completions",
        completion_window: "24h",
      });
      const batch = await ended(openai, made.id);
      expect(batch.status).toBe("failed");
      expect(batch.errors?.data).toMatchObject([{ code: "empty_file" }]);
    },
    WAIT_MS,
  );
});
