/** A gateway refuses bad uploads in OpenAI's form, and keeps nothing of them. */
import { beforeEach, describe, expect, it } from "vitest";
import { within } from "#shared/retry.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { messagesIn } from "./objects.js";
import { answerTo, beginUpload, FORM_END, formOf, upload, type Part } from "./upload.js";
import { until } from "../support/until.js";

const MIB = 1024 * 1024;
const served = useFleet({
  workers: 0,
  models: [],
  direct: true,
  env: {
    BATON_TENANT_HEADER: "x-tenant",
    BATON_FILE_BYTES: String(12 * MIB),
    BATON_TENANT_FILE_BYTES: String(20 * MIB),
    BATON_TOTAL_FILE_BYTES: String(30 * MIB),
    BATON_TENANT_FILES: "3",
    BATON_TOTAL_FILES: "4",
  },
});
const purpose: Part = { field: "purpose", text: "batch" };
const file = (text: string | Buffer, name = "a.jsonl"): Part => ({ field: "file", name, text });
const of = (tenant: string) => ({ "x-tenant": tenant });
const large = Buffer.alloc(11 * MIB, "x");

beforeEach(async () => {
  for (const tenant of ["one", "two"]) {
    const list = await fetch(`${served.url}/v1/files`, { headers: of(tenant) });
    for (const { id } of ((await list.json()) as { data: { id: string }[] }).data) {
      await fetch(`${served.url}/v1/files/${id}`, { method: "DELETE", headers: of(tenant) });
    }
  }
});

/** Expects no stored message and no counted file. */
async function nothingIsLeft(): Promise<void> {
  await until(async () => (await messagesIn(served.fleet.nats.url)) === 0, 5_000);
  await until(async () => (await served.redis.keys("{files}:*")).length === 0, 5_000);
}

describe("an upload", () => {
  it.each([
    ["without a purpose", [file("x")], "purpose must be given"],
    ["for what is not served", [{ field: "purpose", text: "fine-tune" }, file("x")], "it must be 'batch'"],
    [
      "whose purpose comes behind the file and is wrong",
      [file("x"), { field: "purpose", text: "x" }],
      "it must be 'batch'",
    ],
    ["without a file", [purpose], "the form has no file"],
    ["with two files", [purpose, file("x"), file("y")], "more parts than it may have"],
    ["with an unknown field", [purpose, { field: "model", text: "x" }, file("x")], "unknown field 'model'"],
    ["with a field twice", [purpose, purpose, file("x")], "'purpose' is given twice"],
    ["with the file in another field", [purpose, { ...file("x"), field: "data" }], "the field 'file'"],
    ["with a long field", [{ field: "purpose", text: "x".repeat(5_000) }, file("x")], "'purpose' is too long"],
    ["with a long name", [purpose, file("x", "n".repeat(300))], "1 to 255 characters"],
    [
      "with a wrong anchor",
      [purpose, { field: "expires_after[anchor]", text: "now" }, file("x")],
      "must be 'created_at'",
    ],
    [
      "that expires too soon",
      [
        { field: "expires_after[anchor]", text: "created_at" },
        { field: "expires_after[seconds]", text: "60" },
        purpose,
        file("x"),
      ],
      "from 3600 to 2592000",
    ],
  ] as const)("is refused %s", async (_, parts, text) => {
    const { status, body } = await upload(served.url, formOf(parts), of("one"));
    expect(body).toMatchObject({ error: { type: "invalid_request_error", message: expect.stringContaining(text) } });
    expect(status).toBe(400);
    await nothingIsLeft();
  });

  it.each([
    ["no form", "{}", { "content-type": "application/json" }, 400],
    ["without a boundary", "x", { "content-type": "multipart/form-data; a=b" }, 400],
    ["compressed", "x", { "content-encoding": "gzip" }, 501],
    ["cut off", formOf([purpose, file("x")]).subarray(0, -20), {}, 400],
    ["nothing", "", {}, 400],
  ] as const)("is refused where it is %s", async (_, body, headers, status) => {
    expect((await upload(served.url, body, { ...of("one"), ...headers })).status).toBe(status);
    await nothingIsLeft();
  });

  it("of 10 GB is refused before a byte of it is sent", async () => {
    const sent = beginUpload(served.url, { ...of("one"), "content-length": String(10 * 1024 * MIB) });
    const { status, body } = await answerTo(sent);
    sent.destroy();
    expect(status).toBe(413);
    expect(body).toMatchObject({ error: { code: "payload_too_large" } });
    await nothingIsLeft();
  });

  it("that is too long, and does not say how long it is, is refused as soon as it is", async () => {
    const sent = beginUpload(served.url, of("one"));
    const answer = answerTo(sent);
    const piece = Buffer.alloc(MIB, "x");
    do sent.write(piece);
    while (!(await within(20, answer)));
    expect((await answer).status).toBe(413);
    sent.destroy();
    await nothingIsLeft();
  });

  it("has room within the limits of its tenant and of all", async () => {
    const form = formOf([purpose, file(large)]);
    expect((await upload(served.url, form, of("one"))).status).toBe(200);
    const { status, body } = await upload(served.url, form, of("one"));
    expect([status, body]).toMatchObject([429, { error: { code: "file_limit" } }]);
    // An upload of unknown length is refused once it is too long.
    const sent = beginUpload(served.url, of("one"));
    const answer = answerTo(sent);
    sent.write(large);
    sent.end(FORM_END);
    expect((await answer).status).toBe(429);
    sent.destroy();
    expect((await upload(served.url, form, of("two"))).status).toBe(200);
    const full = await upload(served.url, formOf([purpose, file(large.subarray(0, 9 * MIB))]), of("two"));
    expect([full.status, full.body]).toMatchObject([507, { error: { code: "storage_full" } }]);
  });

  it("counts among the files of its tenant and of all", async () => {
    const small = formOf([purpose, file("x")]);
    for (let i = 0; i < 3; i++) expect((await upload(served.url, small, of("one"))).status).toBe(200);
    expect((await upload(served.url, small, of("one"))).body).toMatchObject({ error: { code: "file_limit" } });
    expect((await upload(served.url, small, of("two"))).status).toBe(200);
    expect((await upload(served.url, small, of("two"))).body).toMatchObject({ error: { code: "storage_full" } });
  });

  it("may be empty, have its fields behind it, and be named as if it lay elsewhere", async () => {
    const { status, body } = await upload(served.url, formOf([file("", "../../etc/pass\u00fcwd"), purpose]), of("one"));
    expect([status, body]).toMatchObject([200, { bytes: 0, filename: "pass\u00fcwd" }]);
    const { id } = body as { id: string };
    const content = await fetch(`${served.url}/v1/files/${id}/content`, { headers: of("one") });
    expect([content.status, await content.text()]).toEqual([200, ""]);
    const head = await fetch(`${served.url}/v1/files/${id}/content`, { method: "HEAD", headers: of("one") });
    expect(head.headers.get("content-length")).toBe("0");
  });

  it("that its client breaks off leaves nothing", async () => {
    const sent = beginUpload(served.url, of("one"));
    sent.write(large);
    await until(async () => (await messagesIn(served.fleet.nats.url)) > 20);
    sent.destroy();
    await nothingIsLeft();
  });
});

describe("a file", () => {
  it("is nobody's but its tenant's", async () => {
    const { body } = await upload(served.url, formOf([purpose, file("secret")]), of("one"));
    const { id } = body as { id: string };
    for (const path of [`/v1/files/${id}`, `/v1/files/${id}/content`]) {
      expect((await fetch(served.url + path, { headers: of("two") })).status).toBe(404);
      expect((await fetch(served.url + path, { headers: of("one") })).status).toBe(200);
    }
    const removed = await fetch(`${served.url}/v1/files/${id}`, { method: "DELETE", headers: of("two") });
    expect(removed.status).toBe(404);
    const list = async (tenant: string, query = "") =>
      (await fetch(`${served.url}/v1/files${query}`, { headers: of(tenant) })).json();
    expect(await list("two")).toMatchObject({ data: [], has_more: false });
    expect(await list("one")).toMatchObject({ data: [{ id }], first_id: id, last_id: id, has_more: false });
    expect(await list("two", `?after=${id}`)).toMatchObject({ error: { param: "after" } });
    for (const query of ["?limit=0", "?limit=x", "?order=up", "?wrong=1"]) {
      expect(await list("one", query)).toMatchObject({ error: { type: "invalid_request_error" } });
    }
  });

  it("is gone when its time has passed, before anybody has removed it", async () => {
    const { body } = await upload(served.url, formOf([purpose, file("x")]), of("one"));
    const { id } = body as { id: string };
    await served.redis.hset(`{files}:file:one:${id}`, "expires", "1");
    for (const path of [`/v1/files/${id}`, `/v1/files/${id}/content`]) {
      expect((await fetch(served.url + path, { headers: of("one") })).status).toBe(404);
    }
    expect(await (await fetch(`${served.url}/v1/files`, { headers: of("one") })).json()).toMatchObject({ data: [] });
    await served.redis.hset(`{files}:file:one:${id}`, "expires", "99999999999999");
  });
});
