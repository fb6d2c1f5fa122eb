/** An upload that a client repeats under its Idempotency-Key makes one file. */
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { until } from "../support/until.js";
import { messagesIn } from "./objects.js";
import { answerTo, beginUpload, FORM_END, FORM_TYPE, formOf } from "./upload.js";

const served = useFleet({
  gateways: 2,
  workers: 0,
  models: [],
  direct: true,
  env: { BATON_TENANT_HEADER: "x-tenant" },
});
let count = 0;

interface View {
  readonly id: string;
  readonly bytes: number;
  readonly data: readonly View[];
  readonly error?: { readonly code: string };
}

/** A tenant of its own, whose calls go to the gateways in turn. */
function newTenant() {
  const headers = { "x-tenant": `tenant-${count++}` };
  let calls = 0;
  const urlOf = () => served.fleet.urls[calls++ % 2] ?? "";
  const upload = async (key: string, text: string, name = "a.jsonl") => {
    const body = formOf([
      { field: "purpose", text: "batch" },
      { field: "file", name, text },
    ]);
    const answer = await fetch(`${urlOf()}/v1/files`, {
      method: "POST",
      headers: { ...headers, "content-type": FORM_TYPE, "idempotency-key": key },
      body: new Uint8Array(body),
    });
    const isReplayed = answer.headers.get("idempotent-replayed") === "true";
    return { status: answer.status, view: (await answer.json()) as View, isReplayed };
  };
  const list = async () => ((await (await fetch(`${urlOf()}/v1/files`, { headers })).json()) as View).data;
  const remove = (id: string) => fetch(`${urlOf()}/v1/files/${id}`, { method: "DELETE", headers });
  return { headers, upload, list, remove };
}

const lines = "x".repeat(3 * 1024 * 1024);

describe("an upload", () => {
  it("makes one file under a key, and nothing else is left in the store", async () => {
    const { upload, list, remove } = newTenant();
    const first = await upload("a", lines);
    const stored = await messagesIn(served.fleet.nats.url);
    const again = await upload("a", lines);
    expect([first.status, first.isReplayed, first.view.bytes]).toEqual([200, false, lines.length]);
    expect(again).toEqual({ ...first, isReplayed: true });
    expect(await list()).toEqual([first.view]);
    expect(await messagesIn(served.fleet.nats.url)).toBe(stored);
    for (const other of [() => upload("a", `${lines.slice(1)}y`), () => upload("a", lines, "b.jsonl")]) {
      expect(await other()).toMatchObject({ status: 422, view: { error: { code: "idempotency_mismatch" } } });
    }
    expect((await upload("b", lines)).view.id).not.toBe(first.view.id);
    // The file of the key is gone, so the next upload makes another one.
    await remove(first.view.id);
    const anew = await upload("a", "other");
    expect([anew.status, anew.isReplayed, anew.view.bytes]).toEqual([200, false, 5]);
    expect(await list()).toHaveLength(2);
  });

  it("that broke off has claimed nothing", async () => {
    const { headers, upload, list } = newTenant();
    const broken = beginUpload(served.url, { ...headers, "idempotency-key": "a" });
    broken.write("half of ");
    await until(async () => (await served.redis.keys(`{files}:file:${headers["x-tenant"]}:*`)).length === 1);
    broken.destroy();
    const whole = await upload("a", "another text");
    expect([whole.status, whole.isReplayed]).toEqual([200, false]);
    await until(async () => (await served.redis.keys(`{files}:file:${headers["x-tenant"]}:*`)).length === 1);
    expect(await list()).toEqual([whole.view]);
  });

  it("makes one file of many at the same time", async () => {
    const { upload, list } = newTenant();
    const all = await Promise.all(Array.from({ length: 12 }, () => upload("a", "the same")));
    expect(new Set(all.map(({ status, view }) => `${status} ${view.id}`)).size).toBe(1);
    expect(all.filter(({ isReplayed }) => !isReplayed)).toHaveLength(1);
    expect(await list()).toHaveLength(1);
  });

  it("that is longer than the file of its key is not read to its end", async () => {
    const { headers, upload } = newTenant();
    await upload("a", "short");
    const long = beginUpload(served.url, { ...headers, "idempotency-key": "a" });
    long.write(lines);
    const { status, body } = await answerTo(long);
    expect([status, body]).toMatchObject([422, { error: { code: "idempotency_mismatch" } }]);
    long.destroy();
  });

  it("that ends while another one under the key is under way makes the one file", async () => {
    const { headers, upload, list } = newTenant();
    const slow = beginUpload(served.url, { ...headers, "idempotency-key": "a" });
    slow.write("the ");
    await until(async () => (await served.redis.keys(`{files}:file:${headers["x-tenant"]}:*`)).length === 1);
    const fast = await upload("a", "the same");
    slow.end(`same${FORM_END}`);
    expect(await answerTo(slow)).toEqual({ status: 200, body: fast.view });
    expect(await list()).toEqual([fast.view]);
    await until(async () => (await served.redis.keys(`{files}:file:${headers["x-tenant"]}:*`)).length === 1);
  });
});
