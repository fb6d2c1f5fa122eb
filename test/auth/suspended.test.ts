/** A tenant that is suspended: nothing is done for it, by a request or without one. */
import { describe, expect, it } from "vitest";
import { readJob } from "#shared/queue/jobs/read.js";
import { Batches } from "../../gateway/batches/batches.js";
import { decodeJobId } from "../../gateway/jobs/view.js";
import { Schedules } from "../../gateway/schedules/schedules.js";
import { accepted, ask, ended, simpleBody } from "../jobs/ask.js";
import { find, made } from "../schedules/ask.js";
import { inferLine } from "../support/batches/batches.js";
import { FORM_TYPE, formOf } from "../files/upload.js";
import { useKeyedFleet, type Key } from "./keyed.js";

const fleet = useKeyedFleet({ models: ["simple"], jobs: 1, env: { BATON_BUCKETS: "1" } });
const { served, make, setTenant } = fleet;
const suspend = (tenant: string) => setTenant(tenant, { state: "suspended" });
const resume = (tenant: string) => setTenant(tenant, { state: "active" });

/** Polls until the key's tenant is let in, or is not. */
const standing = (key: Key, status: number) =>
  expect
    .poll(async () => (await ask(`${served.url}/v2/jobs`, { headers: key.headers })).status, { timeout: 5_000 })
    .toBe(status);

/** Polls the record of something, because its tenant may not look. */
const recorded = (state: () => Promise<unknown>) => expect.poll(state, { timeout: 20_000 });

describe("a suspended tenant", () => {
  it("is refused on every path, and let in again once it is active", async () => {
    const key = await make({ tenant: "asking" });
    await standing(key, 200);
    await suspend("asking");
    await standing(key, 403);
    const paths = ["/v2/jobs", "/v2/models/simple/infer", "/v1/files", "/none"];
    for (const path of paths) {
      const { status, text } = await ask(served.url + path, { headers: key.headers });
      expect([path, status, text]).toEqual([path, 403, expect.stringContaining("tenant_suspended")]);
    }
    await resume("asking");
    await standing(key, 200);
  });

  it("has no job run that becomes due", async () => {
    const key = await make({ tenant: "waiting" });
    const job = { infer: simpleBody(1), delay: 3_000 };
    const { id } = await accepted(served.url, "simple", job, key.headers);
    await suspend("waiting");
    const address = decodeJobId("waiting", id);
    if (address === undefined) throw new Error(`${id} is no job`);
    await recorded(async () => (await readJob(fleet.redis, address, 1))?.state).toBe("failed");
    await resume("waiting");
    await standing(key, 200);
    expect(await ended(served.url, id, key.headers)).toMatchObject({
      state: "failed",
      error: { code: "tenant_suspended", message: "the tenant is suspended" },
    });
  });

  it("has no job made by its schedules, which go on once it is active", async () => {
    const key = await make({ tenant: "ticking" });
    const { id } = await made(served.url, "simple", { every: 1_000, job: { infer: simpleBody(1) } }, key);
    await suspend("ticking");
    const schedules = new Schedules(fleet.redis);
    const errorOf = async () => (await schedules.find({ tenant: "ticking", id }))?.schedule.error?.code;
    await recorded(errorOf).toBe("tenant_suspended");
    await resume("ticking");
    await standing(key, 200);
    const { runs } = await find(served.url, id, key);
    await expect.poll(async () => (await find(served.url, id, key)).runs).toBeGreaterThan(runs);
  });

  it("has no line of a batch run", async () => {
    const key = await make({ tenant: "batching" });
    const text = Array.from({ length: 20 }, (_, i) => JSON.stringify(inferLine(i))).join("\n");
    const form = formOf([
      { field: "purpose", text: "batch" },
      { field: "file", name: "a.jsonl", text },
    ]);
    const headers = { ...key.headers, "content-type": FORM_TYPE };
    const file = await ask(`${served.url}/v1/files`, { body: form.toString(), headers });
    const order = {
      input_file_id: file.body.id,
      endpoint: "/v2/models/simple/infer",
      completion_window: "24h",
    };
    const jobs = served.fleet.jobs[0];
    await jobs?.kill();
    const { body, status } = await ask(`${served.url}/v1/batches`, { body: order, headers: key.headers });
    expect(status).toBe(200);
    await suspend("batching");
    await jobs?.start();
    const batches = new Batches(fleet.redis, 1);
    await recorded(async () => (await batches.read("batching", body.id))?.batch.status).toBe("completed");
    await resume("batching");
    await standing(key, 200);
    const batch = await ask(`${served.url}/v1/batches/${body.id}`, { headers: key.headers });
    expect(batch.body).toMatchObject({ status: "completed", request_counts: { total: 20, failed: 20 } });
    const { error_file_id: errors } = batch.body as unknown as { error_file_id: string };
    const lines = await fetch(`${served.url}/v1/files/${errors}/content`, { headers: key.headers });
    const [line = ""] = (await lines.text()).split("\n");
    expect(JSON.parse(line)).toMatchObject({ response: { status_code: 403, body: { code: "tenant_suspended" } } });
  });
});
