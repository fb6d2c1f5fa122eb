/**
 * The paths of jobs that do not simply complete: cancelled, expired, failed, retried, gone, or of
 * another tenant; and lists of jobs.
 */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { until } from "../support/until.js";
import { accepted, ask, ended, simpleBody, standing, submit } from "./ask.js";

const served = useFleet({
  gateways: 2,
  models: ["simple", "picky", "accumulate", "gen-mha"],
  direct: true,
  env: { BATON_TENANT_HEADER: "x-tenant", BATON_JOB_TTL_MS: "600000", BATON_BUCKETS: "16" },
});
const blue = { "x-tenant": "blue" };
const other = () => served.fleet.urls[1] ?? "";
const get = (path: string, headers: Record<string, string> = blue) => ask(`${other()}${path}`, { headers });
const post = (path: string) => ask(`${served.url}${path}`, { method: "POST", headers: blue });
const remove = (path: string) => ask(`${other()}${path}`, { method: "DELETE", headers: blue });

const picky = (row: number) => ({ inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [row] }] });

function step(sequence: number, value: number, start = false): object {
  return {
    parameters: { sequence_id: sequence, sequence_start: start },
    inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [value] }],
  };
}

describe("a job that fails", () => {
  it("says why, and is run once more under its id, once", async () => {
    const headers = { ...blue, "idempotency-key": randomUUID() };
    const job = await accepted(served.url, "picky", { infer: picky(1_000_000) }, headers);
    const view = await ended(other(), job.id, blue);
    expect(view).toMatchObject({ state: "failed", attempts_made: 1, error: { code: "model_error" }, result: null });
    expect(await get(`/v2/jobs/${job.id}/result`)).toMatchObject({ status: 500, body: { code: "model_error" } });
    const tries = await Promise.all([1, 2, 3, 4].map(() => post(`/v2/jobs/${job.id}/retry`)));
    const statuses = tries.map(({ status }) => status);
    expect(statuses.filter((status) => status === 202).length).toBeGreaterThanOrEqual(1);
    expect(statuses.filter((status) => status !== 202 && status !== 409)).toEqual([]);
    const again = await ended(other(), job.id, blue);
    expect(again.attempts_made).toBe(1 + statuses.filter((status) => status === 202).length);
    expect(again.request_id).not.toBe(view.request_id);
    expect(again.created_at).toBe(view.created_at);
    const replayed = await submit(served.url, "picky", { infer: picky(1_000_000) }, headers);
    expect(replayed.body.id).toBe(job.id);
  });
});

describe("a job", () => {
  it("belongs to its tenant (row A69)", async () => {
    const { id } = await accepted(served.url, "simple", { infer: simpleBody(1) }, blue);
    for (const path of [`/v2/jobs/${id}`, `/v2/jobs/${id}/result`, "/v2/jobs/job_none", "/v2/jobs/job_AAAA.0.simple"]) {
      expect(await get(path, { "x-tenant": "red" })).toMatchObject({ status: 404, body: { code: "unknown_job" } });
    }
    expect((await get("/v2/jobs", { "x-tenant": "red" })).body).toMatchObject({
      data: [],
      first_id: null,
      has_more: false,
    });
    const foreign = await ask(`${served.url}/v2/jobs/${id}`, { method: "DELETE", headers: { "x-tenant": "red" } });
    expect(foreign.status).toBe(404);
    await ended(other(), id, blue);
  });

  it("is known longer than its result is kept (row A69)", async () => {
    const { id } = await accepted(served.url, "simple", { infer: simpleBody(1), result_ttl: 1_000 }, blue);
    await ended(other(), id, blue);
    await until(async () => (await get(`/v2/jobs/${id}/result`)).status === 410);
    expect((await get(`/v2/jobs/${id}/result`)).body).toMatchObject({ code: "result_expired" });
    expect((await get(`/v2/jobs/${id}`)).body).toMatchObject({ state: "completed", result: null });
  });

  it("may be a step: jobs of one sequence run in the order in which they were accepted", async () => {
    const ids: string[] = [];
    for (let i = 1; i <= 20; i++) {
      const priority = 1 + (i % 9);
      ids.push((await accepted(served.url, "accumulate", { infer: step(77, i, i === 1), priority }, blue)).id);
    }
    const views = await Promise.all(ids.map((id) => ended(other(), id, blue)));
    const sums = views.map(({ result }) => result?.outputs?.[0]?.data[0]);
    expect(sums).toEqual(ids.map((_, i) => ((i + 1) * (i + 2)) / 2));
  });

  it("that runs tells how far it is, and stops when it is cancelled", async () => {
    const generate = { text_input: "Once", max_tokens: 4_000, ignore_eos: true, temperature: 0 };
    const { id } = await accepted(served.url, "gen-mha", { generate }, blue);
    const view = await standing(
      other(),
      id,
      ({ state, progress }) => state !== "queued" && (progress?.tokens ?? 0) > 2,
      blue,
    );
    if (view.state === "running") {
      const stopped = await remove(`/v2/jobs/${id}`);
      expect([200, 409]).toContain(stopped.status);
    }
    await ended(other(), id, blue);
  });
});

describe("an id or a delay of another form (row A68)", () => {
  it("names no job, and no key of Redis", async () => {
    const { id } = await accepted(served.url, "simple", { infer: simpleBody(1) }, blue);
    const [, request = "", where = ""] = /^job_([^.]+)\.(.*)$/.exec(id) ?? [];
    for (const wrong of [
      `job_blue:${request}.${where}`,
      `job_${request}:${request}.${where}`,
      `job_${request}.${where}:simple`,
      `job_${request}.0:1.simple`,
      `job_${request}.99999.simple`,
      `job_{0}:simple:blue:${request}`,
      `job_:${request}.${where}`,
      id.slice("job_".length),
    ]) {
      const path = `/v2/jobs/${encodeURIComponent(wrong)}`;
      for (const answer of [get(path), get(`${path}/result`), post(`${path}/retry`), remove(path)]) {
        expect([wrong, await answer]).toMatchObject([wrong, { status: 404, body: { code: "unknown_job" } }]);
      }
      expect((await get(`/v2/jobs?after=${encodeURIComponent(wrong)}`)).status).toBe(400);
    }
    await ended(other(), id, blue);
  });

  it("is no time to wait", async () => {
    for (const delay of ["9223372036854775808", "-1", "1e400", "0.5", "253402300800000"]) {
      const body = `{"infer":${JSON.stringify(simpleBody(1))},"delay":${delay}}`;
      expect([delay, (await submit(served.url, "simple", body, blue)).status]).toEqual([delay, 400]);
    }
  });
});

describe("a list of jobs", () => {
  const green = { "x-tenant": "green" };
  const list = async (query: string) => (await get(`/v2/jobs?${query}`, green)).body;

  it("has the newest first, in pages that new jobs do not move, by state, model and labels", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 12; i++) {
      const labels = { team: i % 2 === 0 ? "even" : "odd", i: String(i % 4) };
      const job = i % 3 === 0 ? { infer: picky(1_000_000), labels } : { infer: simpleBody(i), labels };
      ids.push((await accepted(served.url, i % 3 === 0 ? "picky" : "simple", job, green)).id);
    }
    for (const id of ids) await ended(other(), id, green);
    const newest = ids.toReversed();
    const first = await list("limit=5");
    expect(first).toMatchObject({ object: "list", first_id: newest[0], last_id: newest[4], has_more: true });
    await accepted(served.url, "simple", { infer: simpleBody(1) }, green);
    const second = await list(`limit=5&after=${first.last_id}`);
    const third = await list(`limit=5&after=${second.last_id}`);
    expect(third.has_more).toBe(false);
    expect([first, second, third].flatMap(({ data }) => data.map(({ id }) => id))).toEqual(newest);
    const idsOf = async (query: string) => (await list(query)).data.map(({ id }) => id);
    expect(await idsOf("model=picky")).toEqual(newest.filter((id) => id.endsWith("picky")));
    expect(await idsOf("state=failed")).toEqual(newest.filter((id) => id.endsWith("picky")));
    expect(await idsOf("label=team:even&label=i:2")).toEqual([ids[10], ids[6], ids[2]]);
    expect(await idsOf("state=cancelled,expired")).toEqual([]);
  });
});
