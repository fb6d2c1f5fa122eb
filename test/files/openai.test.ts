/** OpenAI's own client, unmodified, with files: two gateways over one store. */
import OpenAI, { ConflictError, NotFoundError, toFile } from "openai";
import { beforeAll, describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { objectsIn } from "./objects.js";

/** With a byte order mark and with line ends of both kinds, which must come back unchanged. */
const TEXT = '\uFEFF{"custom_id":"a"}\r\n{"custom_id":"ü"}\n\r\n';

describe("OpenAI's client", () => {
  const served = useFleet({ gateways: 2, workers: 0, models: [], direct: true });
  let clients: readonly OpenAI[];
  const client = (i: number): OpenAI => clients[i] ?? expect.fail("there are two gateways");
  beforeAll(() => {
    clients = served.fleet.urls.map((url) => new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 }));
  });

  it("uploads a file at one gateway, and finds, reads and deletes it at the other one", async () => {
    const made = await client(0).files.create({
      file: await toFile(Buffer.from(TEXT), "../../lines.jsonl"),
      purpose: "batch",
      expires_after: { anchor: "created_at", seconds: 3_600 },
    });
    expect(made).toMatchObject({
      object: "file",
      bytes: Buffer.byteLength(TEXT),
      filename: "lines.jsonl",
      purpose: "batch",
      status: "processed",
    });
    expect(made.id).toMatch(/^file-[A-Za-z0-9_-]{22,}$/);
    expect(made.expires_at).toBe(made.created_at + 3_600);

    expect(await client(1).files.retrieve(made.id)).toEqual(made);
    const content = await client(1).files.content(made.id);
    expect(Buffer.from(await content.arrayBuffer())).toEqual(Buffer.from(TEXT));
    expect(content.headers.get("content-disposition")).toContain("lines.jsonl");

    expect(await client(1).files.delete(made.id)).toEqual({ id: made.id, object: "file", deleted: true });
    await expect(client(0).files.retrieve(made.id)).rejects.toThrow(NotFoundError);
    await expect(client(0).files.content(made.id)).rejects.toThrow(NotFoundError);
    await expect(client(0).files.delete(made.id)).rejects.toThrow(NotFoundError);
    expect(await objectsIn(served.fleet.nats.url)).toEqual([]);
  });

  it("pages through a list in both orders", async () => {
    const made: string[] = [];
    for (let i = 0; i < 5; i++) {
      const file = await toFile(Buffer.from(String(i)), `${i}.jsonl`);
      made.push((await client(i % 2).files.create({ file, purpose: "batch" })).id);
    }
    for (const [order, expected] of [
      ["asc", made],
      ["desc", made.toReversed()],
    ] as const) {
      const seen: string[] = [];
      for await (const { id } of client(0).files.list({ limit: 2, order, purpose: "batch" })) seen.push(id);
      expect(seen).toEqual(expected);
    }
    expect((await client(0).files.list({ purpose: "batch_output" })).data).toEqual([]);
    for (const id of made) await client(0).files.delete(id);
    expect((await client(1).files.list()).data).toEqual([]);
  });

  it("is an object that NATS's own client reads", async () => {
    const file = await toFile(Buffer.alloc(300_000, "x"), "x.jsonl");
    const { id } = await client(0).files.create({ file, purpose: "batch" });
    expect(await objectsIn(served.fleet.nats.url)).toEqual([{ name: id, bytes: 300_000 }]);
    await client(0).files.delete(id);
  });

  it("keeps a file that somebody uses", async () => {
    const { id } = await client(0).files.create({ file: await toFile(Buffer.from("{}"), "a"), purpose: "batch" });
    const { redis } = served;
    await redis.zadd(`{files}:users:default:${id}`, Date.now() + 3_600_000, "batch_1");
    await expect(client(0).files.delete(id)).rejects.toThrow(ConflictError);
    await redis.zrem(`{files}:users:default:${id}`, "batch_1");
    // A dead batch that did not release the file uses it for a while only.
    await redis.zadd(`{files}:users:default:${id}`, Date.now() - 1_000, "batch_2");
    await client(0).files.delete(id);
  });
});
