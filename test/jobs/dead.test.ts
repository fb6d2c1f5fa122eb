/**
 * Requests that were set aside, since each run ended its worker: their tenant finds them over HTTP
 * and by the command line, and retries the job behind one of these requests.
 */
import { describe, expect, it } from "vitest";
import { POISON_INPUT } from "../fixtures/models/chain-reference.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { baton } from "../cli/baton.js";
import { accepted, ask, ended } from "./ask.js";

const served = useFleet({
  gateways: 2,
  workers: 2,
  models: ["pill"],
  direct: true,
  env: { BATON_BUCKETS: "16" },
  workerEnv: { BATON_MAX_RUNS_ALONE: "1" },
});

interface Dead {
  readonly id: string;
  readonly object: string;
  readonly model: string;
  readonly reason: string;
  readonly runs: number;
  readonly set_aside_at: string;
  readonly request_id: string | null;
  readonly job: string | null;
  readonly sequence_id: number;
  readonly step: number;
  readonly bytes: number;
}
interface DeadList {
  readonly data: readonly Dead[];
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly has_more: boolean;
}

const infer = (sequence: number, value: number) => ({
  parameters: { sequence_id: sequence, sequence_start: true },
  inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [value] }],
});
const poison = Number(POISON_INPUT);
const other = () => served.fleet.urls[1] ?? "";
const get = async (path: string) => {
  const { status, body, text } = await ask(`${other()}${path}`);
  return { status, text, body: body as unknown as Dead & DeadList & { readonly code: string } };
};
const retry = (id: string) => ask(`${served.url}/v2/dead/${id}/retry`, { method: "POST" });
const cli = (...args: readonly string[]) => baton(["dead", ...args], { url: served.url });

describe.skipIf(process.arch !== "x64")("requests that were set aside", () => {
  it("are found by their tenant, and their jobs are run once more", { timeout: 120_000 }, async () => {
    expect((await get("/v2/dead")).body).toMatchObject({ object: "list", data: [], has_more: false, last_id: null });
    const job = await accepted(served.url, "pill", { infer: infer(1, poison) });
    const failed = await ended(other(), job.id);
    expect(failed).toMatchObject({ state: "failed", error: { code: "poison_request" } });
    const waiting = await ask(`${served.url}/v2/models/pill/infer`, { body: infer(2, poison) });
    expect(waiting).toMatchObject({ status: 500, body: { code: "poison_request" } });

    const { body: list } = await get("/v2/dead");
    expect(list.data.map(({ sequence_id: id }) => id)).toEqual([2, 1]);
    const [alone, ofJob] = list.data;
    if (alone === undefined || ofJob === undefined) throw new Error("two were set aside");
    expect(ofJob).toMatchObject({
      object: "dead_request",
      model: "pill",
      reason: "poison_request",
      runs: 1,
      job: job.id,
      request_id: failed.request_id,
      step: 1,
    });
    expect(ofJob.bytes).toBeGreaterThan(0);
    expect(alone.job).toBeNull();
    expect((await get(`/v2/dead/${ofJob.id}`)).body).toEqual(ofJob);
    const first = await get("/v2/dead?limit=1&model=pill");
    expect(first.body).toMatchObject({ data: [alone], has_more: true, last_id: alone.id });
    const second = await get(`/v2/dead?limit=1&after=${first.body.last_id}`);
    expect(second.body.data).toEqual([ofJob]);
    expect((await get("/v2/dead?model=other")).body.data).toEqual([]);

    const shown = await cli("list");
    expect(shown).toMatchObject({ code: 0, stderr: "" });
    expect(shown.stdout.split("\n")[0]).toMatch(/^ID +MODEL +REASON +SET ASIDE +JOB$/);
    const rows = shown.stdout.split("\n").map((line) => line.split(/ +/));
    expect(rows[2]).toEqual([ofJob.id, "pill", "poison_request", ofJob.set_aside_at, job.id]);
    expect((await cli("show", ofJob.id)).stdout).toMatch(/^sequence_id +1$/m);

    expect(await retry(alone.id)).toMatchObject({ status: 409, body: { code: "dead_not_retryable" } });
    expect(await cli("retry", alone.id)).toMatchObject({ code: 4, stdout: "" });
    const again = await cli("retry", ofJob.id);
    expect(again).toMatchObject({ code: 0, stderr: "" });
    expect(again.stdout).toContain(job.id);
    // The request is as deadly as before, and is set aside anew.
    const view = await ended(other(), job.id);
    expect(view).toMatchObject({ state: "failed", attempts_made: 2 });
    const { body: now } = await get("/v2/dead");
    expect(now.data.map((one) => one.job)).toEqual([job.id, null]);
    expect(now.data[0]?.id).not.toBe(ofJob.id);
    expect(await retry(ofJob.id)).toMatchObject({ status: 404, body: { code: "unknown_dead" } });
  });

  it("are asked for in good form", async () => {
    for (const [path, status, code] of [
      ["/v2/dead?limit=0", 400, "invalid_argument"],
      ["/v2/dead?state=failed", 400, "invalid_argument"],
      ["/v2/dead?model=a&model=b", 400, "invalid_argument"],
      ["/v2/dead?after=job_1", 400, "invalid_argument"],
      ["/v2/dead/dead_1", 404, "unknown_dead"],
      ["/v2/dead/dead_1-1.0.pill:x", 404, "unknown_dead"],
      ["/v2/dead/dead_1-1.99999.pill", 404, "unknown_dead"],
      ["/v2/dead/dead_1-1.0.pill", 404, "unknown_dead"],
    ] as const) {
      expect([path, await get(path)]).toMatchObject([path, { status, body: { code } }]);
    }
    expect(await cli("show", "dead_nothing")).toMatchObject({ code: 3, stdout: "" });
  });
});

describe("requests of another tenant", () => {
  const theirs = useFleet({ workers: 0, models: [], direct: true, env: { BATON_TENANT_HEADER: "x-tenant" } });
  it("are nobody's business", async () => {
    const redis = theirs.fleet.redis.connect();
    try {
      const { setAsideKey, laneKeys } = await import("#shared/queue/keys.js");
      const { dead } = laneKeys({ bucket: 0, model: "m", version: "1", digest: "d" });
      await redis.xadd(dead, "5-1", "reason", "poison_request", "runs", "3", "request", "blue:r1", "frame", "f");
      await redis.zadd(setAsideKey(0), 5, "m");
    } finally {
      redis.disconnect();
    }
    const as = (tenant: string, path: string, method = "GET") =>
      ask(`${theirs.url}${path}`, { method, headers: { "x-tenant": tenant } });
    const id = "dead_5-1.0.m";
    expect((await as("blue", "/v2/dead")).body.data).toMatchObject([{ id, request_id: "r1.0.m" }]);
    expect((await as("red", "/v2/dead")).body.data).toEqual([]);
    expect(await as("blue", `/v2/dead/${id}`)).toMatchObject({ status: 200 });
    expect(await as("red", `/v2/dead/${id}`)).toMatchObject({ status: 404, body: { code: "unknown_dead" } });
    expect(await as("red", `/v2/dead/${id}/retry`, "POST")).toMatchObject({ status: 404 });
  });
});
