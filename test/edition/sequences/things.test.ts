/**
 * Sequences as things: a client views, ends, forks and rolls back sequences, and carries a sequence
 * into another fleet.
 */
import { describe, expect, it } from "vitest";
import { bucketOf } from "#shared/queue/address.js";
import { configWith } from "../../support/fleet/repository.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { buckets } from "../settings.js";
import { ask, exported, lookDuring, step, steps, sum, TENANT_HEADER, type Described } from "./ask.js";

const BUCKETS = 16;
const KEPT = 4;
const plan = {
  gateways: 1,
  workers: 2,
  models: ["accumulate", "chain", "slow-sequence", "simple"],
  configs: { accumulate: configWith("accumulate", "checkpoint_history", String(KEPT)) },
  env: { ...buckets(BUCKETS), BATON_TENANT_HEADER: TENANT_HEADER },
  direct: true,
};
const served = useFleet(plan);
const elsewhere = useFleet({ ...plan, workers: 1, env: { BATON_TENANT_HEADER: TENANT_HEADER } });

const at = (id: number | string, rest = "") => `accumulate/sequences/${id}${rest}`;
const get = (path: string) => ask("GET", served.url, path);
const post = (path: string, body: object, key?: string) =>
  ask("POST", served.url, path, { body, ...(key !== undefined && { key }) });

const bucketOfId = (id: number) => bucketOf("accumulate", "acme", `u${id}`, BUCKETS);
/** The first id after `id` that lies in the same bucket, or in another bucket. */
function neighbour(id: number, same: boolean): number {
  for (let other = id + 1; ; other++) if ((bucketOfId(other) === bucketOfId(id)) === same) return other;
}

describe("a sequence is looked at", () => {
  it("and tells where it stands, which prolongs nothing", async () => {
    await steps(served.url, 1, 10, 20);
    const told = await get(at(1));
    expect(told.status).toBe(200);
    expect(told.body).toMatchObject({ sequence_id: 1, step: 2, version: "1", state_bytes: 4, checkpoints: [1, 2] });
    const { workers } = (await (await fetch(`${served.url}/v2/fleet`)).json()) as { workers: { name: string }[] };
    expect(workers.map(({ name }) => name)).toContain(told.body.worker);
    expect(await get(at(1))).toEqual(told);
    expect(Date.parse(told.body.idle_deadline ?? "")).toBeGreaterThan(0);
    expect(await get("accumulate/versions/1/sequences/1")).toEqual(told);
  });

  it("by an id of any characters, whose type the path says where it must", async () => {
    const names = ["42", "a/b", "ü ?#%", "fork"];
    for (const name of names) await step(served.url, "chain", name, 1, { start: true });
    await step(served.url, "chain", 42, 1, { start: true });
    await step(served.url, "chain", 42, 1);
    expect((await get("chain/sequences/42")).body).toMatchObject({ sequence_id: 42, step: 2 });
    expect((await get("chain/sequences/42?type=string")).body).toMatchObject({ sequence_id: "42", step: 1 });
    for (const name of names.slice(1)) {
      const { body } = await get(`chain/sequences/${encodeURIComponent(name)}`);
      expect(body).toMatchObject({ sequence_id: name, step: 1, checkpoints: [1] });
    }
    const huge = await fetch(`${served.url}/v2/models/chain/infer`, {
      method: "POST",
      headers: { [TENANT_HEADER]: "acme" },
      body: `{"parameters":{"sequence_id":18446744073709551615,"sequence_start":true},
        "inputs":[{"name":"INPUT","datatype":"INT64","shape":[1,1],"data":[1]}]}`,
    });
    expect(huge.status).toBe(200);
    const raw = await fetch(`${served.url}/v2/models/chain/sequences/18446744073709551615`, {
      headers: { [TENANT_HEADER]: "acme" },
    });
    expect(await raw.text()).toContain(`"sequence_id":18446744073709551615,`);
  });

  it("by its own tenant alone", async () => {
    await steps(served.url, 2, 1);
    const other = { tenant: "other" };
    expect(await ask("GET", served.url, at(2), other)).toMatchObject({
      status: 404,
      body: { code: "sequence_unknown" },
    });
    expect((await ask("DELETE", served.url, at(2), other)).status).toBe(404);
    expect((await ask("GET", served.url, "accumulate/sequences", other)).body).toEqual({ sequences: [] });
    expect((await get(at(2))).status).toBe(200);
    // How many there are of all tenants is no tenant's business.
    expect((await get("accumulate/sequences")).body).not.toHaveProperty("total");
  });

  it("or is not there, or asked for wrongly, and says so", async () => {
    for (const path of [at(999), at("name"), "simple/sequences/1", at(999, "/state")]) {
      expect(await get(path), path).toMatchObject({ status: 404, body: { code: "sequence_unknown" } });
    }
    expect(await get("nobody/sequences/1")).toMatchObject({ status: 404, body: { code: "unknown_model" } });
    await steps(served.url, 3, 1);
    expect((await get("accumulate/versions/2/sequences/3")).status).toBe(404);
    for (const path of [at(3, "?typ=string"), at(3, "?type=int"), at("18446744073709551616"), at("%ff")]) {
      expect(await get(path), path).toMatchObject({ status: 400, body: { code: "invalid_argument" } });
    }
    for (const [method, rest] of [
      ["PUT", ""],
      ["POST", ""],
      ["GET", "/fork"],
      ["GET", "/rewind"],
      ["POST", "/state"],
    ] as const) {
      const { status, body } = await ask(method, served.url, at(3, rest));
      expect([method, rest, status, body.code]).toEqual([method, rest, 405, "method_not_allowed"]);
    }
    expect((await ask("DELETE", served.url, "accumulate/sequences")).status).toBe(405);
  });
});

describe("sequences are listed", () => {
  async function pages(model: string, limit: number): Promise<Described[][]> {
    const all: Described[][] = [];
    for (let next: string | undefined = ""; next !== undefined;) {
      const { status, body } = await get(`${model}/sequences?limit=${limit}${next && `&after=${next}`}`);
      expect(status).toBe(200);
      all.push([...(body.sequences ?? [])]);
      next = body.next;
    }
    return all;
  }

  it("page by page, each once, over all buckets", async () => {
    const ids = Array.from({ length: 40 }, (_, i) => 1_000 + i);
    await Promise.all(ids.map((id) => steps(served.url, id, 1)));
    const listed = await pages("accumulate", 7);
    expect(Math.max(...listed.map((page) => page.length))).toBe(7);
    const found = listed.flat().map(({ sequence_id }) => Number(sequence_id));
    expect(found.filter((id) => id >= 1_000 && id < 1_040).sort((a, b) => a - b)).toEqual(ids);
    const one = listed.flat().find(({ sequence_id }) => sequence_id === 1_007);
    expect((await get(at(1_007))).body).toEqual(one);
    expect((await get("accumulate/versions/1/sequences?limit=1000")).body.sequences).toHaveLength(found.length);
  });

  it("by the beginning of their ids, as numbers and as texts", async () => {
    for (const name of ["prefix-a", "prefix-b", "präfix", "77", "78x"]) {
      await step(served.url, "chain", name, 1, { start: true });
    }
    await step(served.url, "chain", 770, 1, { start: true });
    const found = async (prefix: string) => {
      const { body } = await get(`chain/sequences?limit=1000&prefix=${encodeURIComponent(prefix)}`);
      return new Set(body.sequences?.map(({ sequence_id }) => sequence_id));
    };
    expect(await found("prefix")).toEqual(new Set(["prefix-a", "prefix-b"]));
    expect(await found("prefix-a")).toEqual(new Set(["prefix-a"]));
    expect(await found("prä")).toEqual(new Set(["präfix"]));
    expect(await found("77")).toEqual(new Set([770, "77"]));
    expect(await found("7*")).toEqual(new Set());
  });

  it("by state, with the steps that wait", async () => {
    const busy = () => get("slow-sequence/sequences?state=busy");
    // A step may be over before a look, so others follow until a look has seen one.
    const seen: Described[] = [];
    let id = 900;
    for (; seen.length === 0; id++) {
      await step(served.url, "slow-sequence", id, 1, { start: true });
      const stepping = Promise.all([1, 2, 3, 4].map(() => step(served.url, "slow-sequence", id, 1)));
      await lookDuring(stepping, async () => {
        seen.push(...((await busy()).body.sequences ?? []).filter(({ waiting }) => waiting > 0));
        return seen.length > 0;
      });
    }
    expect(seen[0]).toMatchObject({ sequence_id: id - 1, state: "busy", last_step_at: null, idle_deadline: null });
    expect(seen[0]?.waiting).toBeLessThanOrEqual(3);
    await expect.poll(async () => (await busy()).body.sequences).toEqual([]);
    const { body } = await get("slow-sequence/sequences?state=live&limit=1000");
    const rested = body.sequences?.find(({ sequence_id: one }) => one === id - 1);
    expect(rested).toMatchObject({ state: "live", waiting: 0 });
    expect(Date.parse(rested?.last_step_at ?? "")).toBeLessThan(Date.parse(rested?.idle_deadline ?? ""));
  });

  it("and what no page can be is refused", async () => {
    for (const query of [
      "limit=0",
      "limit=x",
      "limit=1001",
      "after=nonsense",
      "after=WzAsIngiLCIiXQ",
      "offset=3",
      "state=idle",
    ]) {
      const told = await get(`accumulate/sequences?${query}`);
      expect(told, query).toMatchObject({ status: 400, body: { code: "invalid_argument" } });
    }
    expect((await get("simple/sequences")).body).toEqual({ sequences: [] });
  });
});

describe("a sequence is ended", () => {
  const end = (id: number, key?: string, rest = "") =>
    ask("DELETE", served.url, at(id, rest), key === undefined ? {} : { key });

  it("and a next step wants START", async () => {
    await steps(served.url, 10, 1, 2);
    expect(await end(10)).toMatchObject({ status: 200, body: { sequence_id: 10, step: 2 } });
    expect(await get(at(10))).toMatchObject({ status: 404, body: { code: "sequence_unknown" } });
    expect((await end(10)).status).toBe(404);
    expect(await step(served.url, "accumulate", 10, 3)).toMatchObject({
      status: 400,
      body: { code: "sequence_start_required", reason: "deleted" },
    });
    await steps(served.url, 10, 5);
    expect(await sum(served.url, 10, 1)).toBe(6);
  });

  it("once under a key, whatever has become of the id since", async () => {
    await steps(served.url, 11, 1);
    const first = await end(11, "k");
    expect(first.status).toBe(200);
    await steps(served.url, 11, 7);
    expect(await end(11, "k")).toEqual(first);
    expect(await post(at(11, "/rewind"), { step: 1 }, "k")).toMatchObject({
      status: 422,
      body: { code: "idempotency_mismatch" },
    });
    expect(await sum(served.url, 11, 1)).toBe(8);
  });

  it("while its steps run: those that were admitted run to their end", async () => {
    const id = 5;
    await step(served.url, "slow-sequence", id, 1, { start: true });
    const running: ReturnType<typeof step>[] = [];
    const path = `slow-sequence/sequences/${id}`;
    // A look may come before the steps, or after them.
    const look = async () => {
      for (let i = 0; i < 4; i++) running.push(step(served.url, "slow-sequence", id, 1));
      return (await get(path)).body.idle_deadline;
    };
    await expect.poll(look).toBeNull();
    expect((await ask("DELETE", served.url, path)).status).toBe(200);
    expect((await get(path)).status).toBe(404);
    const statuses = (await Promise.all(running)).map(({ status, body }) => (status === 200 ? 200 : body.reason));
    expect(statuses.filter((said) => said !== 200 && said !== "deleted")).toEqual([]);
    expect(statuses).toContain(200);
    await expect
      .poll(async () => (await step(served.url, "slow-sequence", id, 1)).body)
      .toMatchObject({ code: "sequence_start_required", reason: "deleted" });
  });
});

describe("a sequence is forked", () => {
  it.each([
    ["in its own bucket", true],
    ["into another bucket", false],
  ])("%s, and both go on by themselves", async (_, same) => {
    const id = same ? 100 : 200;
    const other = neighbour(id, same);
    await steps(served.url, id, 1, 10, 100);
    const forked = await post(at(id, "/fork"), { sequence_id: other }, "f");
    expect(forked).toMatchObject({ status: 200, body: { sequence_id: other, step: 3, checkpoints: [3] } });
    expect(await sum(served.url, other, 1_000)).toBe(1_111);
    expect(await sum(served.url, id, 5)).toBe(116);
    expect(await post(at(id, "/fork"), { sequence_id: other }, "f")).toEqual(forked);
    expect(await post(at(id, "/fork"), { sequence_id: other })).toMatchObject({
      status: 409,
      body: { code: "sequence_exists" },
    });
    const early = neighbour(other, same);
    expect((await post(at(id, "/fork"), { sequence_id: early, step: 2 })).body).toMatchObject({ step: 2 });
    expect(await sum(served.url, early, 7)).toBe(18);
  });

  it("and goes on like an unforked run, at workers that never had it", async () => {
    const values = [3, 1, 4, 1, 5];
    for (const [i, value] of values.entries()) await step(served.url, "chain", "whole", value, { start: i === 0 });
    const last = (await step(served.url, "chain", "whole", 9)).output;
    for (const [i, value] of values.slice(0, 3).entries()) {
      await step(served.url, "chain", "trunk", value, { start: i === 0 });
    }
    const fork = { sequence_id: "branch" };
    expect((await post("chain/sequences/trunk/fork", fork)).body).toMatchObject({ sequence_id: "branch", step: 3 });
    await Promise.all(served.fleet.workers.map((worker) => worker.restart()));
    await served.fleet.whenServing();
    for (const value of values.slice(3)) await step(served.url, "chain", "branch", value);
    expect((await step(served.url, "chain", "branch", 9)).output).toBe(last);
    expect(last).toBeDefined();
    // The view names a killed worker until the worker's lease is over.
    const trunk = async () => (await get("chain/sequences/trunk")).body;
    await expect.poll(trunk).toMatchObject({ step: 3, worker: null });
  });

  it("unless it cannot be, which is said", async () => {
    await steps(served.url, 300, 1, 2, 3, 4, 5, 6);
    const fork = (body: object) => post(at(300, "/fork"), body);
    expect(await fork({ sequence_id: 300 })).toMatchObject({ status: 409, body: { code: "sequence_exists" } });
    expect(await fork({ sequence_id: 301, step: 2 })).toMatchObject({
      status: 410,
      body: { code: "checkpoint_gone", error: expect.stringContaining("3, 4, 5, 6") as string },
    });
    expect(await fork({ sequence_id: 301, step: 7 })).toMatchObject({
      status: 400,
      body: { code: "invalid_argument", error: expect.stringContaining("6") as string },
    });
    for (const body of [
      {},
      { sequence_id: 0 },
      { sequence_id: "x" },
      { sequence_id: 301, step: 0 },
      { sequence_id: 301, stp: 1 },
    ]) {
      expect((await fork(body)).status, JSON.stringify(body)).toBe(400);
    }
    expect(await post(at(998, "/fork"), { sequence_id: 301 })).toMatchObject({
      status: 404,
      body: { code: "sequence_unknown" },
    });
    expect((await get(at(301))).status).toBe(404);
  });

  it("without history at its newest checkpoint alone", async () => {
    await step(served.url, "chain", 301, 1, { start: true });
    await step(served.url, "chain", 301, 2);
    expect(await post("chain/sequences/301/fork", { sequence_id: "twin", step: 1 })).toMatchObject({
      status: 410,
      body: { code: "checkpoint_gone", error: expect.stringContaining("2") as string },
    });
    expect((await post("chain/sequences/301/fork", { sequence_id: "twin", step: 2 })).status).toBe(200);
    const [one, twin] = [await step(served.url, "chain", 301, 3), await step(served.url, "chain", "twin", 3)];
    expect(twin.output).toBe(one.output);
    expect(one.status).toBe(200);
  });
});

describe("a sequence is taken back", () => {
  it("and goes on from there; what came later is gone", async () => {
    await steps(served.url, 400, 1, 10, 100, 1_000);
    const rewound = await post(at(400, "/rewind"), { step: 2 }, "back");
    expect(rewound).toMatchObject({ status: 200, body: { sequence_id: 400, step: 2, checkpoints: [1, 2] } });
    expect(await post(at(400, "/rewind"), { step: 3 })).toMatchObject({ status: 400 });
    expect(await sum(served.url, 400, 5)).toBe(16);
    expect(await post(at(400, "/rewind"), { step: 2 }, "back")).toEqual(rewound);
    expect(await sum(served.url, 400, 5)).toBe(21);
    expect((await get(at(400))).body.step).toBe(4);
  });

  it("unless it cannot be, which is said", async () => {
    await steps(served.url, 401, 1, 2, 3, 4, 5);
    const back = (body: object) => post(at(401, "/rewind"), body);
    expect(await back({ step: 1 })).toMatchObject({ status: 410, body: { code: "checkpoint_gone" } });
    expect(await back({ step: 6 })).toMatchObject({ status: 400, body: { code: "invalid_argument" } });
    for (const body of [{}, { step: "2" }, { step: 0 }, { step: 1.5 }]) {
      expect((await back(body)).status, JSON.stringify(body)).toBe(400);
    }
    expect(await post(at(997, "/rewind"), { step: 1 })).toMatchObject({ status: 404 });
    expect((await get(at(401))).body.step).toBe(5);
  });
});

describe("a checkpoint is carried", () => {
  it("to another id, and into a second fleet, and goes on there", async () => {
    await steps(served.url, 500, 1, 10, 100);
    const newest = await exported(served.url, at(500, "/state"));
    const earlier = await exported(served.url, at(500, "/state?step=2"));
    const put = (url: string, id: number, body: Buffer, key?: string) =>
      ask("PUT", url, at(id, "/state"), { body, ...(key !== undefined && { key }) });
    expect(await put(served.url, 501, earlier)).toMatchObject({ status: 200, body: { sequence_id: 501, step: 2 } });
    expect(await sum(served.url, 501, 5)).toBe(16);
    const first = await put(elsewhere.url, 500, newest, "carried");
    expect(first).toMatchObject({ status: 200, body: { sequence_id: 500, step: 3, checkpoints: [3], state_bytes: 4 } });
    expect(await sum(elsewhere.url, 500, 5)).toBe(116);
    expect(await sum(served.url, 500, 6)).toBe(117);
    expect(await put(elsewhere.url, 500, newest, "carried")).toEqual(first);
    expect(await put(elsewhere.url, 500, newest)).toMatchObject({ status: 409, body: { code: "sequence_exists" } });
    expect(await sum(elsewhere.url, 500, 1)).toBe(117);
  });

  it("unless it is spoiled, or another model's: no sequence is made", async () => {
    await steps(served.url, 510, 1);
    const frame = await exported(served.url, at(510, "/state"));
    const put = (body: Buffer, path = at(511, "/state")) => ask("PUT", served.url, path, { body });
    for (let end = 0; end < frame.length; end += 7) {
      expect(await put(frame.subarray(0, end)), `cut at ${end}`).toMatchObject({
        status: 400,
        body: { code: "frame_corrupt" },
      });
    }
    for (let i = 0; i < frame.length; i += 5) {
      const spoiled = Buffer.from(frame);
      spoiled.writeUInt8(spoiled.readUInt8(i) ^ 4, i);
      expect((await put(spoiled)).body.code, `spoiled at ${i}`).toBe("frame_corrupt");
    }
    expect((await put(Buffer.concat([frame, Buffer.alloc(1)]))).body.code).toBe("frame_corrupt");
    expect(await put(frame, "chain/sequences/511/state")).toMatchObject({
      status: 409,
      body: { code: "frame_mismatch" },
    });
    expect((await get(at(511))).status).toBe(404);
    expect((await get(at(510, "/state?step=2"))).status).toBe(400);
    // JavaScript takes the last three for numbers.
    for (const step of ["x", "", "1e0", "0x1", "%201"]) {
      expect((await get(at(510, `/state?step=${step}`))).status).toBe(400);
    }
  });
});

describe("a step that finds no sequence is told why", () => {
  const reason = async (id: number, model = "accumulate") => {
    const { status, body } = await step(served.url, model, id, 1);
    return [status, body.code, body.reason];
  };
  const refused = (why: string) => [400, "sequence_start_required", why];

  it("never_started, ended or deleted", async () => {
    expect(await reason(600)).toEqual(refused("never_started"));
    await steps(served.url, 601, 1);
    await step(served.url, "accumulate", 601, 1, { end: true });
    expect(await reason(601)).toEqual(refused("ended"));
    await steps(served.url, 602, 1);
    await ask("DELETE", served.url, at(602));
    expect(await reason(602)).toEqual(refused("deleted"));
  });
});
