/** Webhooks get the events of jobs: the tenant's webhooks, and a job's own webhook. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { Receiver, verified, WebhookClient, type Received } from "../support/jobs/webhooks.js";
import { accepted, ask, ended, simpleBody, standing, submit } from "./ask.js";

const SECRETS_KEY = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const JOB_EVENTS = ["job.started", "job.completed", "job.failed", "job.cancelled", "job.expired"];

const served = useFleet({
  gateways: 2,
  jobs: 1,
  models: ["simple", "picky", "accumulate", "gen-cheap", "echo-int32"],
  direct: true,
  env: { BATON_TENANT_HEADER: "x-tenant", BATON_BUCKETS: "4", BATON_SECRETS_KEY: SECRETS_KEY },
  jobsEnv: { BATON_WEBHOOK_RETRY_MS: "100,200", BATON_LOG_LEVEL: "debug" },
});

const other = () => served.fleet.urls[1] ?? "";
const picky = (row: number) => ({ inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [row] }] });
const step = (sequence: number, value: number, start = false) => ({
  parameters: { sequence_id: sequence, sequence_start: start },
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [value] }],
});

interface Told {
  readonly type: string;
  readonly timestamp: string;
  readonly data: Record<string, unknown> & { readonly id: string; readonly state: string };
}

let receiver: Receiver;
let count = 0;
beforeAll(async () => {
  receiver = await Receiver.start();
});
afterAll(async () => {
  await receiver.dispose();
});
/** A job for this time keeps its body until then. */
const soon = () => new Date(Date.now() + 1_000).toISOString();
const newTenant = () => ({ "x-tenant": `tenant-${count++}` });
const told = (path: string) => receiver.at(path).map(({ body }) => JSON.parse(body) as Told);
/** Waits for this many events, each of which comes once. */
const events = async (path: string, most: number) => {
  await expect.poll(() => receiver.at(path).length).toBe(most);
  return told(path).sort((a, b) => (a.timestamp < b.timestamp ? -1 : 1));
};
const register = async (tenant: Record<string, string>, path: string, wanted = JOB_EVENTS) => {
  const client = new WebhookClient(served.url, tenant);
  const { body } = await client.ask<{ id: string; secret: string }>("POST", "/webhooks", {
    url: receiver.url(path),
    events: wanted,
  });
  return { client, ...body };
};

describe("a tenant's webhook", () => {
  it.each([
    ["simple", { infer: simpleBody(3) }],
    ["gen-cheap", { generate: { text_input: "Once", max_tokens: 8, temperature: 0 } }],
    ["accumulate", { infer: step(7, 5, true) }],
  ])("is told that a job for %s has begun, and what it has given", async (model, job) => {
    const tenant = newTenant();
    const path = `/${model}-told`;
    const { secret, client, id: webhook } = await register(tenant, path);
    await register(newTenant(), "/somebody-else");
    const { id } = await accepted(served.url, model, { ...job, labels: { team: "blue" } }, tenant);
    const view = await ended(other(), id, tenant);
    const [first, second] = await events(path, 2);
    const [started, completed] = first?.type === "job.started" ? [first, second] : [second, first];
    expect([started?.type, completed?.type]).toEqual(["job.started", "job.completed"]);
    expect(completed?.data).toEqual({ ...view });
    expect(Date.parse(completed?.timestamp ?? "")).toBeGreaterThanOrEqual(Date.parse(view.ended_at ?? ""));
    const begun = started?.data;
    expect(begun).toMatchObject({ id, state: "running", result: null, ended_at: null, labels: { team: "blue" } });
    expect(Date.parse(String(begun?.["started_at"]))).toBeGreaterThanOrEqual(Date.parse(view.queued_at ?? ""));
    for (const one of receiver.at(path)) verified(one, secret);
    await expect
      .poll(async () => (await client.deliveries(`?job=${id}`)).map(({ state }) => state))
      .toEqual(["delivered", "delivered"]);
    for (const one of await client.deliveries(`?job=${id}`)) expect(one).toMatchObject({ job: id, webhook });
    expect(await client.deliveries(`?job=${id}&webhook=wh_none`)).toEqual([]);
    expect(await client.deliveries("?job=job_none")).toEqual([]);
    expect(await new WebhookClient(served.url, newTenant()).deliveries(`?job=${id}`)).toEqual([]);
    expect(told("/somebody-else")).toEqual([]);
  });

  it("is told how a job stood when it failed, although it was run once more meanwhile", async () => {
    const tenant = newTenant();
    await register(tenant, "/failed", ["job.failed"]);
    const [jobs] = served.fleet.jobs;
    await jobs?.kill();
    const job = await accepted(served.url, "picky", { infer: picky(1_000_000) }, tenant);
    const views = [await ended(other(), job.id, tenant)];
    const again = await ask(`${served.url}/v2/jobs/${job.id}/retry`, { method: "POST", headers: tenant });
    expect(again.status).toBe(202);
    views.push(await standing(other(), job.id, (view) => view.attempts_made === 2 && view.ended_at !== null, tenant));
    await jobs?.start();
    const both = await events("/failed", 2);
    expect(both.map(({ data }) => data)).toEqual(views.map((view) => ({ ...view })));
    expect(views).toMatchObject([{ state: "failed" }, { state: "failed", error: { code: "model_error" } }]);
  });

  it("is told that a job was cancelled, or has expired, and not that it has begun", async () => {
    const tenant = newTenant();
    await register(tenant, "/unrun");
    const [worker] = served.fleet.workers;
    await worker?.kill();
    const cancelled = await accepted(served.url, "simple", { infer: simpleBody(1) }, tenant);
    await ask(`${other()}/v2/jobs/${cancelled.id}`, { method: "DELETE", headers: tenant });
    await accepted(served.url, "simple", { infer: simpleBody(1), deadline: 1 }, tenant);
    const both = await events("/unrun", 2);
    await worker?.start();
    expect(both.map(({ type, data }) => `${type} ${data.state} ${String(data["started_at"])}`).sort()).toEqual([
      "job.cancelled cancelled null",
      "job.expired expired null",
    ]);
  });

  it("is told of no more than 16 KiB of a result", async () => {
    const tenant = newTenant();
    await register(tenant, "/long", ["job.completed"]);
    const data = Array<number>(4_000).fill(1_000_000_000);
    const infer = { inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, data.length], data }] };
    const sent = await submit(served.url, "echo-int32", { infer }, tenant);
    expect((await ended(other(), sent.body.id, tenant)).result).not.toBeNull();
    const [one] = await events("/long", 1);
    expect(one?.data).toMatchObject({
      state: "completed",
      result: null,
      result_url: `/v2/jobs/${sent.body.id}/result`,
    });
  });
});

describe("a webhook of a job's own", () => {
  const submitted = async (job: object, tenant: Record<string, string>, key: string = randomUUID()) =>
    submit(served.url, "simple", { infer: simpleBody(2), ...job }, { ...tenant, "idempotency-key": key });
  interface Own {
    readonly webhook: { readonly url: string; readonly events: readonly string[]; readonly secret?: string };
  }
  const own = (body: unknown) => (body as Own).webhook;
  const only = (path: string): Received => {
    const [one] = receiver.at(path);
    if (one === undefined) throw new Error("nothing came");
    return one;
  };

  it("is told how that job ends, signed with a secret that only its submission shows", async () => {
    const tenant = newTenant();
    const client = new WebhookClient(served.url, tenant);
    const [key, url] = [randomUUID(), receiver.url("/own")];
    const sent = await submitted({ webhook: { url } }, tenant, key);
    expect([sent.status, sent.text]).toEqual([202, expect.stringContaining("whsec_")]);
    const { secret = "", ...shown } = own(sent.body);
    expect(shown).toEqual({ url, events: JOB_EVENTS.slice(1) });
    await accepted(served.url, "simple", { infer: simpleBody(2) }, tenant);
    await events("/own", 1);
    const { type, data } = verified(only("/own"), secret);
    expect([type, data["id"], data["state"]]).toEqual(["job.completed", sent.body.id, "completed"]);
    expect(data).not.toHaveProperty("webhook");

    const again = await submitted({ webhook: { url } }, tenant, key);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(own(again.body).secret).toBe(secret);
    expect(await submitted({}, tenant, key)).toMatchObject({ status: 422, body: { code: "idempotency_mismatch" } });
    const view = await ask(`${other()}/v2/jobs/${sent.body.id}`, { headers: tenant });
    expect(own(view.body)).toEqual(shown);
    expect((await client.ask<{ data: unknown[] }>("GET", "/webhooks")).body.data).toEqual([]);
    await expect
      .poll(() => client.deliveries(`?job=${sent.body.id}`))
      .toMatchObject([{ id: only("/own").id, job: sent.body.id, webhook: null, state: "delivered" }]);
    const replay = await client.ask("POST", `/deliveries/${only("/own").id}/replay`);
    expect(replay.status).toBe(202);
    await expect.poll(() => receiver.at("/own").length).toBe(2);
    expect(receiver.at("/own").map(({ id, body }) => id + body)).toEqual(
      [1, 2].map(() => only("/own").id + only("/own").body),
    );
    for (const one of receiver.at("/own")) verified(one, secret);
  });

  it("takes a secret that its client has chosen, the events that it names, or a webhook by its id", async () => {
    const tenant = newTenant();
    const secret = `whsec_${Buffer.alloc(24, 5).toString("base64")}`;
    const otherSecret = `whsec_${Buffer.alloc(24, 6).toString("base64")}`;
    const webhook = { url: receiver.url("/chosen"), events: ["job.started"], secret };
    const key = randomUUID();
    const { body } = await submitted({ webhook }, tenant, key);
    expect(own(body)).toEqual(webhook);
    expect((await submitted({ webhook: { ...webhook, secret: otherSecret } }, tenant, key)).status).toBe(422);
    await ended(other(), body.id, tenant);
    await events("/chosen", 1);
    expect(verified(only("/chosen"), secret).type).toBe("job.started");

    const { id, secret: its } = await register(tenant, "/named", ["sequence.expired"]);
    const named = await submitted({ webhook: { id } }, tenant);
    expect(own(named.body)).toEqual({ id, events: JOB_EVENTS.slice(1) });
    await events("/named", 1);
    expect(verified(only("/named"), its).data["id"]).toBe(named.body.id);
    // A webhook that wants the event anyway gets it once.
    const both = await register(tenant, "/both", ["job.completed"]);
    await submitted({ webhook: { id: both.id } }, tenant);
    await submitted({}, tenant);
    await events("/both", 2);
  });

  it("keeps a long body, whose memory its reader takes", async () => {
    const tenant = newTenant();
    const text = JSON.stringify({ infer: simpleBody(2), webhook: { url: receiver.url("/long-body") }, run_at: soon() });
    const { body } = await submit(
      served.url,
      "simple",
      text.replace('"inputs":', `"inputs":${" ".repeat(200_000)}`),
      tenant,
    );
    expect(await ended(other(), body.id, tenant)).toMatchObject({ state: "completed" });
    await events("/long-body", 1);
  });

  it.each([
    [{ url: "http://127.1:22/" }, "url_not_allowed"],
    [{ url: "https://10.0.0.1/" }, "url_not_allowed"],
    [{ url: "https://169.254.169.254/" }, "url_not_allowed"],
    [{ url: "https://u:p@93.184.215.14/" }, "url_not_allowed"],
    [{}, "invalid_argument"],
    ["https://93.184.215.14/", "invalid_argument"],
    [{ url: 5 }, "invalid_argument"],
    [{ id: "wh_none" }, "invalid_argument"],
    [{ id: "wh_none", url: "https://93.184.215.14/" }, "invalid_argument"],
    [{ url: "https://93.184.215.14/", events: ["sequence.expired"] }, "invalid_argument"],
    [{ url: "https://93.184.215.14/", events: [] }, "invalid_argument"],
    [{ url: "https://93.184.215.14/", secret: "hunter2" }, "invalid_argument"],
    [{ url: "https://93.184.215.14/", enabled: true }, "invalid_argument"],
  ])("is refused where it is %j (A61)", async (webhook, code) => {
    const sent = await submitted({ webhook }, newTenant());
    expect([sent.status, sent.body.code]).toEqual([400, code]);
    expect(sent.text).not.toContain("hunter2");
  });

  it("is not another tenant's", async () => {
    const { id } = await register(newTenant(), "/foreign");
    const sent = await submitted({ webhook: { id } }, newTenant());
    expect([sent.status, sent.body.code]).toEqual([400, "invalid_argument"]);
  });

  it("is told how a job that waits ends: once it has run, or when it is cancelled before", async () => {
    const tenant = newTenant();
    const hour = 3_600_000;
    const started = { events: ["job.started", ...JOB_EVENTS.slice(1)] };
    const sentTo = (path: string, delay: number) =>
      submitted({ delay, deadline: hour, webhook: { url: receiver.url(path), ...started } }, tenant);
    const [runs, waits] = [await sentTo("/delayed", 500), await sentTo("/undone", hour)];
    const removed = await ask(`${other()}/v2/jobs/${waits.body.id}`, { method: "DELETE", headers: tenant });
    expect(removed.body).toMatchObject({ state: "cancelled", attempts_made: 0 });
    const { webhook: _, ...view } = removed.body as typeof removed.body & Own;
    const [undone] = await events("/undone", 1);
    expect([undone?.type, undone?.data]).toEqual(["job.cancelled", view]);
    expect(view).toMatchObject({ queued_at: null, started_at: null, request_id: null, run_at: waits.body.run_at });
    expect(view.deadline).toBe(new Date(Date.parse(view.run_at ?? "") + hour).toISOString());

    const both = await events("/delayed", 2);
    expect(both.map(({ type }) => type).toSorted()).toEqual(["job.completed", "job.started"]);
    for (const { data } of both) expect(data).toMatchObject({ attempts_made: 1, run_at: runs.body.run_at });
    const { webhook: __, ...end } = (await ended(other(), runs.body.id, tenant)) as typeof view & Own;
    expect(both.find(({ type }) => type === "job.completed")?.data).toEqual({ ...end });
    for (const one of receiver.at("/delayed")) verified(one, own(runs.body).secret ?? "");
  });

  it("is told of each run of a job that is tried again, and of one end; or that it was cancelled between two", async () => {
    const tenant = newTenant();
    const tried = async (path: string, delay: number) => {
      const webhook = { url: receiver.url(path), events: JOB_EVENTS };
      const backoff = { type: "fixed", delay, max: delay };
      return accepted(served.url, "picky", { infer: picky(1_000_000), attempts: 3, backoff, webhook }, tenant);
    };
    const [fails, waits] = [await tried("/tried", 100), await tried("/between", 3_600_000)];
    await standing(other(), waits.id, ({ state }) => state === "scheduled", tenant);
    await ask(`${other()}/v2/jobs/${waits.id}`, { method: "DELETE", headers: tenant });
    const cancelled = await events("/between", 2);
    expect(cancelled.map(({ type }) => type).toSorted()).toEqual(["job.cancelled", "job.started"]);
    for (const { type, data } of cancelled) {
      const queued = type === "job.started" ? expect.any(String) : null;
      expect(data).toMatchObject({ attempts: 3, attempts_made: 1, queued_at: queued, run_at: null });
    }

    await ended(other(), fails.id, tenant);
    const all = await events("/tried", 4);
    const runs = all.map(({ type, data }) => `${type} ${String(data["attempts_made"])}`).toSorted();
    expect(runs).toEqual(["job.failed 3", "job.started 1", "job.started 2", "job.started 3"]);
    const { webhook: _, ...view } = (await ended(other(), fails.id, tenant)) as typeof fails & Own;
    expect(all.find(({ type }) => type === "job.failed")?.data).toEqual({ ...view });
    const requests = new Set(all.map(({ data }) => data["request_id"]));
    expect(requests.size).toBe(3);
  });

  it("that is named by its id is told of the jobs of a schedule, for which one with a url is refused", async () => {
    const tenant = newTenant();
    const { id: webhook, client } = await register(tenant, "/ticks", ["sequence.expired"]);
    const path = "/models/simple/schedules";
    const schedule = (hook: object) => ({ every: 1_000, limit: 1, job: { infer: simpleBody(1), webhook: hook } });
    const refused = await client.ask<{ error: string }>("POST", path, schedule({ url: receiver.url("/ticks") }));
    expect([refused.status, refused.body.error]).toEqual([400, expect.stringContaining("job.webhook must name")]);
    const { body } = await client.ask<{ id: string }>("POST", path, schedule({ id: webhook }));
    const [told] = await events("/ticks", 1);
    const { data } = await client
      .ask<{ data: { id: string; scheduled_for: string }[] }>("GET", `/jobs?schedule=${body.id}`)
      .then(({ body: page }) => page);
    expect([told?.type, told?.data.id]).toEqual(["job.completed", data[0]?.id]);
    expect(told?.data).toMatchObject({ schedule: body.id, scheduled_for: data[0]?.scheduled_for });
  });

  it("has a secret that nobody reads: not in Redis, a log or a view, while the job waits or has failed (A66)", async () => {
    const tenant = newTenant();
    const secret = `whsec_${Buffer.from(randomUUID()).toString("base64")}`;
    const webhook = { url: receiver.on("/down", () => 500), secret };
    const failing = await accepted(served.url, "picky", { infer: picky(1_000_000), webhook }, tenant);
    await ended(other(), failing.id, tenant);
    await expect.poll(() => receiver.at("/down").length).toBe(3);
    const client = new WebhookClient(served.url, tenant);
    await expect
      .poll(async () => (await client.deliveries(`?job=${failing.id}`)).map(({ state }) => state))
      .toEqual(["failed"]);
    const bare = secret.slice("whsec_".length);
    const dumps: string[] = [];
    for (const key of await served.redis.keys("*"))
      dumps.push((await served.redis.dumpBuffer(key))?.toString("latin1") ?? "");
    expect(dumps.some((dump) => dump.includes("/down"))).toBe(true);
    expect(dumps.filter((dump) => dump.includes(bare))).toEqual([]);
    const { gateways, jobs, workers } = served.fleet;
    const lines = [...gateways.map(({ member }) => member), ...jobs, ...workers].flatMap(
      ({ process }) => process.lines,
    );
    expect(lines.filter(({ text }) => text.includes(bare))).toEqual([]);
    for (const path of [`/jobs/${failing.id}`, "/jobs", "/deliveries"]) {
      expect((await client.ask("GET", path)).text).not.toMatch(/whsec_|sealed:/);
    }
    // The stored body of the job is enough for a retry, with the same webhook.
    const again = await ask(`${served.url}/v2/jobs/${failing.id}/retry`, { method: "POST", headers: tenant });
    expect(again.status).toBe(202);
    await expect.poll(() => new Set(receiver.at("/down").map(({ id }) => id)).size).toBe(2);
    verified(receiver.at("/down").at(-1) ?? only("/down"), secret);
  });
});
