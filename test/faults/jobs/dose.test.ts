/**
 * Jobs with webhooks while every part of the fleet is killed with SIGKILL (F31): each job ends in
 * one outcome, and every message arrives at least once under one id and with one body. A receiver
 * that drops known ids sees each event once. BATON_FULL=1 takes 10 000 jobs instead of a few.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nth, pause, repeatedly } from "../pace.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { Receiver, verified, WebhookClient, type Behaviour } from "../../support/jobs/webhooks.js";
import { ask, simpleBody, submit, type Body } from "../../jobs/ask.js";

const full = process.env["BATON_FULL"] === "1";
const dose = {
  jobs: full ? 10_000 : 200,
  clients: full ? 16 : 8,
  /** How often each kind of part is killed, and the ms between two kills of a kind. */
  kills: full ? 12 : 2,
  everyMs: full ? [7_000, 6_000, 5_000, 9_000, 8_000] : [500, 700, 400, 600, 300],
  /** The ms during which clients submit jobs. */
  spreadMs: full ? 120_000 : 3_000,
  /** A client repeats one submission in this many under its key after the answer. */
  repeated: 10,
  /** One job in this many has its own webhook. */
  own: 3,
  patienceMs: full ? 480_000 : 120_000,
};

const served = useFleet({
  gateways: 2,
  workers: 2,
  jobs: 2,
  models: ["simple", "picky", "gen-cheap"],
  env: { BATON_BUCKETS: "4" },
  jobsEnv: { BATON_WEBHOOK_RETRY_MS: Array(40).fill(500).join(","), BATON_DELIVERY_LIMIT: "20000" },
});

interface Sent {
  readonly id: string;
  readonly own: string | undefined;
}

/** Asks one gateway after the other until a gateway gives a wanted answer. */
async function persist(i: number, send: (url: string) => ReturnType<typeof ask>, wanted: readonly number[]) {
  const giveUpAt = performance.now() + dose.patienceMs;
  for (let tries = i; ; tries++) {
    try {
      const answer = await send(nth(served.fleet.urls, tries));
      if (wanted.includes(answer.status)) return answer;
      if (answer.status !== 503) throw new TypeError(`answered ${answer.status} ${answer.text}`);
    } catch (error) {
      if (error instanceof TypeError && error.message.startsWith("answered")) throw error;
      if (performance.now() > giveUpAt) throw error;
    }
    await pause(50);
  }
}

/** Most jobs are quick; a few generate, fail, expire, or are cancelled. */
function planned(i: number): { readonly model: string; readonly job: object } {
  const generate = { text_input: `Once ${i}`, max_tokens: 6, temperature: 0 };
  const picky = { inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [1_000_000] }] };
  switch (i % 20) {
    case 1:
      return { model: "gen-cheap", job: { generate } };
    case 2:
      return { model: "picky", job: { infer: picky } };
    case 4:
      // The test cancels this job.
      return { model: "gen-cheap", job: { generate: { ...generate, max_tokens: 300 } } };
    case 3:
      return { model: "simple", job: { infer: simpleBody(i), deadline: 1 } };
    default:
      return { model: "simple", job: { infer: simpleBody(i) } };
  }
}

const ENDED = /^(completed|failed|cancelled|expired)$/;

describe("jobs with webhooks, while all parts of the fleet are killed", () => {
  let receiver: Receiver;
  let secret = "";
  beforeAll(async () => {
    receiver = await Receiver.start();
    // The receiver refuses the first copy of a few messages, and does not answer a few others.
    const seen = new Set<string>();
    const moody: Behaviour = (received, _, socket) => {
      const { id, path } = received;
      // A signature holds for five minutes.
      if (path === "/tenant") verified(received, secret);
      const mood = seen.has(id) ? "" : id.slice(-1);
      seen.add(id);
      if (mood === "A") return 503;
      if (mood === "B") socket.resetAndDestroy();
      return mood === "B" ? undefined : 204;
    };
    for (const path of ["/tenant", "/own"]) receiver.on(path, moody);
  });
  afterAll(() => receiver.dispose());

  async function submitOne(i: number): Promise<Sent> {
    const { model, job } = planned(i);
    const own = i % dose.own === 0 ? receiver.url("/own") : undefined;
    const whole = { ...job, ...(own !== undefined && { webhook: { url: own } }) };
    const headers = { "idempotency-key": `dose-${i}` };
    const send = () => persist(i, (url) => submit(url, model, whole, headers), [202]);
    const { body } = await send();
    if (i % dose.repeated === 0) expect((await send()).body.id).toBe(body.id);
    if (i % 20 === 4) await persist(i, (url) => ask(`${url}/v2/jobs/${body.id}`, { method: "DELETE" }), [200, 409]);
    return { id: body.id, own };
  }

  async function listAll(query: string): Promise<Body[]> {
    const all: Body[] = [];
    for (let after = ""; ;) {
      const { body } = await persist(0, (url) => ask(`${url}/v2/jobs?limit=100${query}${after}`), [200]);
      all.push(...body.data);
      if (!body.has_more) return all;
      after = `&after=${body.last_id}`;
    }
  }

  async function breakAll(): Promise<void> {
    const { gateways, workers, jobs, redis, nats } = served.fleet;
    const kinds: ((i: number) => Promise<unknown>)[] = [
      (i) => nth(gateways, i).member.restart(),
      (i) => nth(workers, i).restart(),
      (i) => nth(jobs, i).restart(),
      () => redis.kill().then(() => redis.restart()),
      () => nats.kill().then(() => nats.restart()),
    ];
    await Promise.all(kinds.map((kill, kind) => repeatedly(dose.kills, nth(dose.everyMs, kind), kill)));
  }

  it("end once each, and are told of once", { timeout: dose.patienceMs + 120_000 }, async () => {
    const begunAt = performance.now();
    const client = new WebhookClient(served.url);
    const events = ["job.completed", "job.failed", "job.cancelled", "job.expired"];
    const url = receiver.url("/tenant");
    const { body: webhook } = await client.ask<{ secret: string }>("POST", "/webhooks", { url, events });
    secret = webhook.secret;
    const breaking = breakAll();
    const sent: Sent[] = [];
    let next = 0;
    const clients = Array.from({ length: dose.clients }, async () => {
      for (let i = next++; i < dose.jobs; i = next++) {
        await pause((i / dose.jobs) * dose.spreadMs - (performance.now() - begunAt));
        sent.push(await submitOne(i));
      }
    });
    await Promise.all([breaking, ...clients]);
    const submittedAt = performance.now();
    expect(new Set(sent.map(({ id }) => id)).size).toBe(dose.jobs);

    await expect.poll(() => listAll("&state=queued,running"), { timeout: dose.patienceMs, interval: 500 }).toEqual([]);
    const ends = await listAll("");
    expect(ends.map(({ id }) => id).toSorted()).toEqual(sent.map(({ id }) => id).toSorted());
    expect(ends.filter(({ state }) => !ENDED.test(state))).toEqual([]);
    const endedAt = performance.now();

    const owned = sent.filter(({ own }) => own !== undefined).length;
    const ids = (path: string) => new Set(receiver.at(path).map(({ id }) => id)).size;
    await expect.poll(() => [ids("/tenant"), ids("/own")], { timeout: dose.patienceMs }).toEqual([dose.jobs, owned]);
    const pending = () => client.deliveries("?state=pending&limit=100");
    await expect.poll(pending, { timeout: dose.patienceMs, interval: 500 }).toEqual([]);
    const toldAt = performance.now();

    const bodies = new Map<string, string>();
    for (const { id, body } of receiver.received) {
      expect(bodies.get(id) ?? body).toBe(body);
      bodies.set(id, body);
    }
    const stateOf = new Map(ends.map(({ id, state }) => [id, `job.${state}`]));
    for (const path of ["/tenant", "/own"]) {
      const byId = new Map(receiver.at(path).map((one) => [one.id, one]));
      const told = [...byId.values()].map(({ body }) => JSON.parse(body) as { type: string; data: { id: string } });
      const wrong = told.filter(({ type, data }) => stateOf.get(data.id) !== type);
      expect(wrong).toEqual([]);
      expect(new Set(told.map(({ data }) => data.id)).size).toBe(told.length);
    }
    const seconds = (from: number, to: number) => Math.round((to - from) / 100) / 10;
    const states = ends.reduce<Record<string, number>>(
      (sum, { state }) => ({ ...sum, [state]: (sum[state] ?? 0) + 1 }),
      {},
    );
    const numbers = {
      jobs: dose.jobs,
      kills: dose.kills * dose.everyMs.length,
      states,
      messages: bodies.size,
      twice: receiver.received.length - bodies.size,
      seconds: [seconds(begunAt, submittedAt), seconds(submittedAt, endedAt), seconds(endedAt, toldAt)],
    };
    console.log(`jobs-dose ${JSON.stringify(numbers)}`);
  });
});
