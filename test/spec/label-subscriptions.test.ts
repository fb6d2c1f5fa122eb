/** Clients read the streams of all jobs with a label straight from NATS. */
import { Events } from "nats";
import { describe, expect, it } from "vitest";
import { freePort } from "../support/brokers/port.js";
import { connectAs } from "../support/brokers/nats.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { subjectOfLabel, submitLabelled, tokenOf } from "../support/streams/labels.js";
import {
  askToSubscribe,
  listen,
  openNats,
  readCapturedOfMany,
  type Subscription,
} from "../support/streams/subscriber.js";
import { until } from "../support/until.js";

const MODEL = "gen-mha";
const CAPTURE = { BATON_CAPTURE_TTL_MS: "600000", BATON_TENANT_HEADER: "x-tenant" };
const served = useFleet({
  jobs: 1,
  models: [MODEL, "simple"],
  direct: true,
  guarded: true,
  // The jobs process has no key for subscriptions, as in Compose.
  jobsEnv: { BATON_NATS_SIGNING_SEED: "" },
  env: CAPTURE,
});

type Headers = Readonly<Record<string, string>>;
const tenant = (name: string) => ({ "x-tenant": name });
const acme = tenant("acme");

const generate = (tokens = 40) => ({ text_input: "the baton", parameters: { max_tokens: tokens } });
const submit = (labels: Readonly<Record<string, string>>, headers: Headers = acme, tokens = 40) =>
  submitLabelled(served.url, MODEL, generate(tokens), { labels }, headers);

async function log(id: string, headers: Headers = acme): Promise<string[]> {
  for (;;) {
    const answer = await fetch(`${served.url}/v2/requests/${id}/stream`, { headers });
    const records = ((await answer.json()) as unknown[]).map((record) => JSON.stringify(record));
    if (answer.headers.get("stream-closed") === "true") return records;
  }
}

async function subscribe(label: string, headers: Headers = acme, more: object = {}): Promise<Subscription> {
  const { status, body } = await askToSubscribe(served.url, "/v2/subscriptions", { label, ...more }, headers);
  expect([status, body.error]).toEqual([200, undefined]);
  return body;
}

const labelled = (label: string, request: string, who = "acme") => subjectOfLabel(who, label, MODEL, tokenOf(request));

describe("a subscription to a label", () => {
  it("has the streams of its jobs, live and late, and no others", async () => {
    const told = await subscribe("team:blue");
    expect(told).toMatchObject({
      subject: subjectOfLabel("acme", "team:blue"),
      jetstream: { stream: "BATON_TOKENS", from: 0 },
    });
    const live = await listen(told);
    const [blue, red] = [await submit({ team: "blue" }), await submit({ team: "red" })];
    const theirs = await submit({ team: "blue" }, tenant("globex"));
    const records = await log(blue.request);
    expect((await live.of(labelled("team:blue", blue.request))).texts).toEqual(records);
    const kind = "job.kind:tale: long, and with 'ü'";
    const both = await submit({ team: "blue", "job.kind": "tale: long, and with 'ü'" });
    const ofBoth = await log(both.request);
    await Promise.all([log(red.request), log(theirs.request, tenant("globex"))]);
    const late = await readCapturedOfMany(told, 2);
    expect([...late.keys()]).toEqual([blue, both].map(({ request }) => labelled("team:blue", request)));
    expect([...late.values()].map(({ texts }) => texts)).toEqual([records, ofBoth]);
    const byKind = await readCapturedOfMany(await subscribe(kind), 1);
    expect([...byKind].map(([subject, { texts }]) => [subject, texts])).toEqual([
      [labelled(kind, both.request), ofBoth],
    ]);
  });

  it("lets a durable reader go on where it was", async () => {
    const one = await submit({ way: "durable" });
    const first = await subscribe("way:durable", acme, { durable: "app" });
    expect([...(await readCapturedOfMany(first, 1)).keys()]).toEqual([labelled("way:durable", one.request)]);
    const two = await submit({ way: "durable" });
    const again = await subscribe("way:durable", acme, { durable: "app" });
    expect(again.jetstream?.consumer).toBe(first.jetstream?.consumer);
    expect([...(await readCapturedOfMany(again, 1)).keys()]).toEqual([labelled("way:durable", two.request)]);
    const other = await subscribe("way:other", acme, { durable: "app" });
    expect(other.jetstream?.consumer).not.toBe(first.jetstream?.consumer);
  });

  it("has the jobs of the jobs process, too: delayed ones, and those of schedules", async () => {
    const live = [await listen(await subscribe("by:delay")), await listen(await subscribe("by:schedule"))] as const;
    const body = (options: object) => ({
      method: "POST",
      headers: { "content-type": "application/json", ...acme },
      body: JSON.stringify(options),
    });
    const job = { generate: generate(), labels: { by: "schedule" } };
    const path = `${served.url}/v2/models/${MODEL}`;
    const answers = [
      await fetch(`${path}/jobs`, body({ generate: generate(), labels: { by: "delay" }, delay: 1 })),
      await fetch(`${path}/schedules`, body({ every: 1_000, limit: 1, job })),
    ];
    expect(answers.map(({ status }) => status)).toEqual([202, 201]);
    for (const [i, by] of (["delay", "schedule"] as const).entries()) {
      let request: string | null = null;
      await until(async () => {
        const answer = await fetch(`${served.url}/v2/jobs?label=by:${by}`, { headers: acme });
        const { data } = (await answer.json()) as { data: { request_id: string | null }[] };
        request = data[0]?.request_id ?? null;
        return request !== null;
      });
      const read = await live[i]?.of(labelled(`by:${by}`, request ?? ""));
      expect(read?.texts).toEqual(await log(request ?? ""));
    }
  });

  it("has the end of a job that is cancelled, and of one that no worker had", async () => {
    const told = await subscribe("fate:cancelled");
    const live = [await listen(told), await listen(told)] as const;
    const running = await submit({ fate: "cancelled" }, acme, 4_000);
    await until(async () => {
      const answer = await fetch(`${served.url}/v2/jobs/${running.id}`, { headers: acme });
      const { progress } = (await answer.json()) as { progress: { tokens: number } | null };
      return (progress?.tokens ?? 0) > 0;
    });
    const [worker] = served.fleet.workers;
    const cancel = async (id: string) => {
      const answer = await fetch(`${served.url}/v2/jobs/${id}`, { method: "DELETE", headers: acme });
      expect(answer.status).toBe(200);
    };
    await cancel(running.id);
    const ended = (await live[0].of(labelled("fate:cancelled", running.request))).texts;
    expect(ended).toEqual(await log(running.request));
    worker?.freeze();
    const queued = await submit({ fate: "cancelled" });
    await cancel(queued.id);
    const atOnce = (await live[1].of(labelled("fate:cancelled", queued.request))).texts;
    worker?.thaw();
    expect(atOnce).toEqual(await log(queued.request));
    for (const last of [ended.at(-1), atOnce.at(-1)]) expect(last).toContain('"reason":"cancelled"');
    expect(atOnce).toHaveLength(1);
    const late = await readCapturedOfMany(told, 2);
    expect([...late.values()].map(({ texts }) => texts)).toEqual([ended, atOnce]);
  });

  it("has credentials that are good for no other label, tenant or subject", async () => {
    const connection = await openNats(await subscribe("team:blue"));
    const said: string[] = [];
    void (async () => {
      for await (const { type, permissionContext: context } of connection.status()) {
        if (type === Events.Error && context !== undefined) said.push(context.subject);
      }
    })();
    const subjects = [
      subjectOfLabel("acme", "team:red"),
      subjectOfLabel("globex", "team:blue"),
      "baton.v1.acme.label.*.*.*",
      "baton.v1.acme.*.*",
      "baton.v1.>",
    ];
    for (const subject of subjects) connection.subscribe(subject, { callback: () => undefined });
    await until(() => said.length === subjects.length);
    expect(said.sort()).toEqual(subjects.sort());
    await connection.close();
  });

  it("is refused by name where it cannot be meant", async () => {
    for (const [body, why] of [
      [{ label: "team" }, "label must be a name and a value as team:blue"],
      [{ label: ":blue" }, "label must be a name and a value"],
      [{ label: "te am:blue" }, "label must be a name and a value"],
      [{ label: `team:${"x".repeat(257)}` }, "at most 256 characters"],
      [{ label: { team: "blue" } }, "label"],
      [{ label: "team:blue", model: MODEL }, "'model' and 'label' are both given"],
      [{ labels: "team:blue" }, "labels"],
      [{ label: "team:blue", from: 3 }, "from"],
    ] as const) {
      const { status, body: told } = await askToSubscribe(served.url, "/v2/subscriptions", body, acme);
      expect([status, told.code, told.error]).toEqual([400, "invalid_argument", expect.stringContaining(why)]);
    }
  });
});

describe("what labels cost", () => {
  it("is a message for each record and label, and nothing where there is none", async () => {
    const who = tenant("counted");
    const own = await connectAs(served.fleet.nats, "operator");
    const { streams } = await own.jetstreamManager();
    const figures: string[] = [];
    const most = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`label-${i}`, "x".repeat(256)]));
    for (const labels of [{}, { one: "1" }, { one: "1", two: "2" }, most]) {
      const before = (await streams.info("BATON_TOKENS")).state;
      const { request } = await submit(labels, who);
      const records = (await log(request, who)).length;
      const expected = Object.entries(labels).map(([name, value]) => labelled(`${name}:${value}`, request, "counted"));
      const subjects = [`baton.v1.counted.${MODEL}.${tokenOf(request)}`, ...expected];
      const counts = async () => {
        const { state } = await streams.info("BATON_TOKENS", { subjects_filter: "baton.v1.counted.>" });
        return Object.entries(state.subjects ?? {}).filter(([subject]) => subject.endsWith(tokenOf(request)));
      };
      const whole = records * subjects.length;
      await until(async () => (await counts()).reduce((sum, [, count]) => sum + count, 0) >= whole);
      expect(Object.fromEntries(await counts())).toEqual(Object.fromEntries(subjects.map((one) => [one, records])));
      const bytes = (await streams.info("BATON_TOKENS")).state.bytes - before.bytes;
      figures.push(`${expected.length} labels: ${whole} messages, ${bytes} bytes`);
    }
    console.log(`a stream of 40 tokens in JetStream, with ${figures.join("; ")}`);
    // A job of a tensor model has no records.
    const data = Array<number>(16).fill(1);
    const inputs = ["INPUT0", "INPUT1"].map((name) => ({ name, shape: [1, 16], datatype: "INT32", data }));
    const answer = await fetch(`${served.url}/v2/models/simple/jobs`, {
      method: "POST",
      headers: { "content-type": "application/json", ...who },
      body: JSON.stringify({ infer: { inputs }, labels: { tensor: "1" } }),
    });
    const { id } = (await answer.json()) as { id: string };
    await until(async () => {
      const view = await fetch(`${served.url}/v2/jobs/${id}`, { headers: who });
      return ((await view.json()) as { state: string }).state === "completed";
    });
    const filter = { subjects_filter: subjectOfLabel("counted", "tensor:1") };
    expect((await streams.info("BATON_TOKENS", filter)).state.subjects ?? {}).toEqual({});
    await own.close();
  });
});

describe("gateways side by side", () => {
  it("give the subjects of labels back to JetStream where an earlier version has taken them away", async () => {
    const own = await connectAs(served.fleet.nats, "operator");
    const { streams } = await own.jetstreamManager();
    const { config } = await streams.info("BATON_TOKENS");
    expect([...config.subjects].sort()).toEqual(["baton.v1.*.*.*", "baton.v1.*.label.*.*.*"]);
    await streams.update("BATON_TOKENS", { subjects: ["baton.v1.*.*.*"] });
    const [gateway] = served.fleet.gateways;
    await gateway?.member.kill();
    await gateway?.member.start();
    await until(async () => (await streams.info("BATON_TOKENS")).config.subjects.length === 2);
    await served.fleet.whenServing();
    const told = await subscribe("after:update");
    const { request } = await submit({ after: "update" });
    expect([...(await readCapturedOfMany(told, 1)).values()].map(({ texts }) => texts)).toEqual([await log(request)]);
    await own.close();
  });

  it("know a job again under its key, whether or not they make subscriptions", async () => {
    const port = String(await freePort());
    const creds = served.fleet.nats.guard?.creds.gateway ?? "";
    const env = { BATON_NATS_CREDS: creds, BATON_HOST: "127.0.0.1", BATON_HTTP_PORT: port };
    served.fleet.launch("bundled/gateway/main.js", env);
    const other = `http://127.0.0.1:${port}`;
    const isReady = async () => {
      try {
        return (await fetch(`${other}/v2/models/${MODEL}/ready`)).status === 200;
      } catch {
        return false;
      }
    };
    await until(isReady);
    expect((await askToSubscribe(other, "/v2/subscriptions", { label: "a:b" }, acme)).status).toBe(501);
    const job = (url: string, key: string) =>
      submitLabelled(url, MODEL, generate(), { labels: { side: "by-side" } }, { ...acme, "idempotency-key": key });
    expect((await job(other, "here")).id).toBe((await job(served.url, "here")).id);
    const there = await job(served.url, "there");
    expect((await job(other, "there")).id).toBe(there.id);
    // Only the job from the gateway with subscriptions has a subject for its label.
    const late = await readCapturedOfMany(await subscribe("side:by-side"), 1);
    expect([...late.keys()]).toEqual([labelled("side:by-side", there.request)]);
  });
});
