/**
 * Clients read straight from NATS: the answers of gateways, and the powers of their credentials.
 */
import { describe, expect, it } from "vitest";
import { connect, Events, type Msg, type NatsConnection, type Subscription as NatsSubscription } from "nats";
import { connectAs } from "../support/brokers/nats.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { startFleet } from "../support/fleet/fleet.js";
import { submitLabelled } from "../support/streams/labels.js";
import { askToSubscribe, openNats, readCaptured, type Subscription } from "../support/streams/subscriber.js";
import { until } from "../support/until.js";

const SECOND_MS = 1_000;
const served = useFleet({
  jobs: 1,
  models: ["gen-mha", "simple"],
  direct: true,
  guarded: true,
  // Settings of gateways only. No other process may make the JetStream stream with its own
  // settings.
  jobsEnv: { BATON_CAPTURE_BYTES: "1048576" },
  env: { BATON_CAPTURE_TTL_MS: "600000", BATON_TENANT_HEADER: "x-tenant", BATON_SUBSCRIPTION_LIMIT: "25" },
});

const acme = { "x-tenant": "acme" };
const globex = { "x-tenant": "globex" };

async function submit(path: string, body: unknown, headers: Readonly<Record<string, string>>): Promise<string> {
  const answer = await fetch(served.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", prefer: "respond-async", ...headers },
    body: JSON.stringify(body),
  });
  const { id } = (await answer.json()) as { id: string };
  if (answer.status !== 202) throw new Error(`answered with ${answer.status}`);
  return id;
}

const generate = (headers: Readonly<Record<string, string>>, tokens = 40) =>
  submit(
    "/v2/models/gen-mha/generate_stream",
    { text_input: "the baton", parameters: { max_tokens: tokens } },
    headers,
  );

const log = (id: string, headers: Readonly<Record<string, string>>) =>
  recordsOf(`${served.url}/v2/requests/${id}/stream`, headers);

async function recordsOf(url: string, headers: Readonly<Record<string, string>> = {}): Promise<string[]> {
  for (;;) {
    const answer = await fetch(url, { headers });
    const records = ((await answer.json()) as unknown[]).map((record) => JSON.stringify(record));
    if (answer.headers.get("stream-closed") === "true") return records;
  }
}

async function subscribe(
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>>,
): Promise<Subscription> {
  const { status, body: told } = await askToSubscribe(served.url, path, body, headers);
  expect([status, told.error]).toEqual([200, undefined]);
  return told;
}

const refusal = async (path: string, body: unknown, headers = acme) => {
  const { status, body: told } = await askToSubscribe(served.url, path, body, headers);
  return [status, told.code];
};

/** NATS checks the new name of the JetStream requests that readers send. */
const asNamed = (subject: string) =>
  subject
    .replace("$JS.API.CONSUMER.INFO.BATON_TOKENS", "baton.jetstream.info")
    .replace("$JS.API.CONSUMER.MSG.NEXT.BATON_TOKENS", "baton.jetstream.next");

/** The server's complaints about forbidden operations of the connection. */
function refusals(connection: NatsConnection): string[] {
  const said: string[] = [];
  void (async () => {
    for await (const { type, permissionContext: context } of connection.status()) {
      if (type === Events.Error && context !== undefined) said.push(`${context.operation} ${context.subject}`);
    }
  })();
  return said;
}

describe("POST /v2/requests/<id>/subscription", () => {
  it("tells a reader where and how, in the documented shape", async () => {
    const id = await generate(acme);
    const before = Date.now();
    const told = await subscribe(`/v2/requests/${id}/subscription`, { ttl: 60_000 }, acme);
    const [request = ""] = id.split(".");
    expect(told).toEqual({
      subject: `baton.v1.acme.gen-mha.${request}`,
      servers: [expect.stringMatching(/^nats:/), expect.stringMatching(/^ws:/)],
      inbox_prefix: expect.stringMatching(/^_INBOX_\w+$/),
      expires_at: expect.stringMatching(/Z$/),
      credentials: { jwt: expect.stringMatching(/^ey/), seed: expect.stringMatching(/^SU/) },
      jetstream: { stream: "BATON_TOKENS", consumer: expect.stringMatching(/^c_/), from: 0 },
    });
    const left = Date.parse(told.expires_at) - before;
    expect(left).toBeGreaterThanOrEqual(60_000);
    expect(left).toBeLessThan(60_000 + 30 * SECOND_MS);
    expect((await readCaptured(told)).texts).toEqual(await log(id, acme));
  });

  it("lets a durable reader go on where it was, and begin at an index", async () => {
    const id = await generate(acme);
    const path = `/v2/requests/${id}/subscription`;
    const records = await log(id, acme);
    const first = await subscribe(path, { durable: "app-1" }, acme);
    expect((await readCaptured(first, 15)).texts).toEqual(records.slice(0, 15));
    const again = await subscribe(path, { durable: "app-1" }, acme);
    expect(again.jetstream).toEqual({ ...first.jetstream, from: 15 });
    // Records without an acknowledgement come again, and first.
    expect((await readCaptured(again, 10, 4)).texts).toEqual(records.slice(15, 25));
    const back = await subscribe(path, { durable: "app-1" }, acme);
    expect(back.jetstream?.from).toBe(19);
    expect((await readCaptured(back)).texts).toEqual(records.slice(19));
    const anew = await subscribe(path, { durable: "app-1", from: 7 }, acme);
    expect(anew.jetstream).toEqual({ ...first.jetstream, from: 7 });
    expect((await readCaptured(anew)).texts).toEqual(records.slice(7));
    // At the end there is nothing more, and past the end there never was.
    const end = await subscribe(path, { from: records.length }, acme);
    expect(end.jetstream?.from).toBe(records.length);
  });

  it("refuses what cannot be meant, by name", async () => {
    const id = await generate(acme);
    const length = (await log(id, acme)).length;
    const path = `/v2/requests/${id}/subscription`;
    expect(await refusal(path, { from: length + 1 })).toEqual([409, "ahead_of_log"]);
    expect(await refusal(path, {}, globex)).toEqual([404, "unknown_request"]);
    expect(await refusal("/v2/requests/nothing/subscription", {})).toEqual([404, "unknown_request"]);
    const infer = { inputs: [{ name: "INPUT0", shape: [1, 16], datatype: "INT32", data: Array(16).fill(1) }] };
    const two = { inputs: [infer.inputs[0], { ...infer.inputs[0], name: "INPUT1" }] };
    const tensor = await submit("/v2/models/simple/infer", two, acme);
    expect(await refusal(`/v2/requests/${tensor}/subscription`, {})).toEqual([409, "not_a_stream"]);
    for (const body of [{ from: -1 }, { from: "0" }, { durable: "a.b" }, { durable: "" }, { ttl: 1 }, { begin: 0 }]) {
      expect(await refusal(path, body)).toEqual([400, "invalid_argument"]);
    }
    expect(await refusal("/v2/subscriptions", { model: "nobody" })).toEqual([404, "unknown_model"]);
    expect(await refusal("/v2/subscriptions", { model: "simple" })).toEqual([409, "not_a_stream"]);
    for (const body of [{ model: 1 }, { tenant: "globex" }, { from: 3 }]) {
      expect(await refusal("/v2/subscriptions", body)).toEqual([400, "invalid_argument"]);
    }
  });

  it("gives several who ask for one name at a time what all of them can read", async () => {
    const id = await generate(acme);
    const records = await log(id, acme);
    const path = `/v2/requests/${id}/subscription`;
    for (const round of [0, 1, 2]) {
      const asked = Array.from({ length: 6 }, (_, i) =>
        subscribe(path, { durable: "shared", from: 3 * round + i }, acme),
      );
      await Promise.all(asked);
    }
    const told = await subscribe(path, { durable: "shared", from: 5 }, acme);
    expect((await readCaptured(told)).texts).toEqual(records.slice(5));
  });

  it("bounds how many consumers a tenant has", async () => {
    const own = { "x-tenant": "many" };
    const id = await generate(own);
    const path = `/v2/requests/${id}/subscription`;
    let made = 0;
    for (; made <= 25; made++) {
      const { status, body } = await askToSubscribe(served.url, path, {}, own);
      if (status === 200) continue;
      expect([status, body.code]).toEqual([429, "subscription_limit"]);
      break;
    }
    expect(made).toBe(25);
    await subscribe("/v2/subscriptions", {}, globex);
  });
});

describe("POST /v2/subscriptions", () => {
  it("covers all streams of a tenant to one model, live and captured, and no other tenant's", async () => {
    const told = await subscribe("/v2/subscriptions", { model: "gen-mha" }, globex);
    expect(told.subject).toBe("baton.v1.globex.gen-mha.*");
    const connection = await openNats(told);
    const heard: string[] = [];
    connection.subscribe(told.subject, { callback: (_, message) => void heard.push(message.subject) });
    await connection.flush();
    const own = [await generate(globex), await generate(globex)];
    const other = await generate(acme);
    const lengths = await Promise.all(own.map(async (id) => (await log(id, globex)).length));
    await log(other, acme);
    const subjects = own.map((id) => `baton.v1.globex.gen-mha.${id.split(".")[0]}`);
    await until(() => subjects.every((one, i) => heard.filter((subject) => subject === one).length === lengths[i]));
    expect(new Set(heard)).toEqual(new Set(subjects));
    const all = await subscribe("/v2/subscriptions", {}, globex);
    expect(all.subject).toBe("baton.v1.globex.*.*");
    expect(all.jetstream?.from).toBe(0);
    const consumer = await connection.jetstream().consumers.get("BATON_TOKENS", told.jetstream?.consumer ?? "");
    const captured: string[] = [];
    while (captured.length < heard.length) {
      for await (const message of await consumer.fetch({ max_messages: 200, expires: 1_000 }))
        captured.push(message.subject);
    }
    expect(new Set(captured)).toEqual(new Set(subjects));
    await connection.close();
  });
});

describe("the credentials of a subscription", () => {
  it("are good for its subject and consumer, and for nothing else", async () => {
    const [mine, theirs] = [await generate(acme), await generate(globex)];
    const told = await subscribe(`/v2/requests/${mine}/subscription`, {}, acme);
    const other = await subscribe(`/v2/requests/${theirs}/subscription`, {}, globex);
    const sibling = await subscribe(`/v2/requests/${mine}/subscription`, {}, acme);
    const connection = await openNats(told);
    const said = refusals(connection);
    const place = (one: Subscription) => `BATON_TOKENS.${one.jetstream?.consumer}`;
    const heard: string[] = [];
    const subjects = [
      other.subject,
      "baton.v1.globex.>",
      "baton.v1.acme.gen-mha.*",
      ">",
      "baton.reply.*",
      "$JS.>",
      `${other.inbox_prefix}.>`,
      "_INBOX.>",
    ];
    const subscriptions: NatsSubscription[] = subjects.map((subject) =>
      connection.subscribe(subject, { callback: (error, message) => void (error ?? heard.push(message.subject)) }),
    );
    const published = [
      told.subject,
      other.subject,
      "baton.graves",
      "$JS.API.INFO",
      "$JS.API.STREAM.NAMES",
      "$JS.API.STREAM.INFO.BATON_TOKENS",
      "$JS.API.STREAM.MSG.GET.BATON_TOKENS",
      "$JS.API.STREAM.DELETE.BATON_TOKENS",
      "$JS.API.CONSUMER.CREATE.BATON_TOKENS",
      "$JS.API.CONSUMER.DURABLE.CREATE.BATON_TOKENS.mine",
      `$JS.API.CONSUMER.DELETE.${place(told)}`,
      `$JS.API.CONSUMER.MSG.NEXT.${place(other)}`,
      `$JS.API.CONSUMER.MSG.NEXT.${place(sibling)}`,
      `$JS.API.CONSUMER.INFO.${place(other)}`,
      `$JS.ACK.${place(other)}.1.1.1.1.1`,
    ];
    for (const subject of published) connection.publish(subject, "{}");
    await until(() => said.length === subjects.length + published.length);
    expect(said.sort()).toEqual(
      [...subjects.map((one) => `subscription ${one}`), ...published.map((one) => `publish ${asNamed(one)}`)].sort(),
    );
    await generate(globex);
    expect((await readCaptured(other)).texts).toEqual(await log(theirs, globex));
    expect(heard).toEqual([]);
    expect(subscriptions.every((one) => one.isClosed())).toBe(true);
    expect((await readCaptured(told)).texts).toEqual(await log(mine, acme));
    await connection.close();
  });

  it("give their holder nobody else's power, wherever JetStream is told to send its answers", async () => {
    const id = await generate(acme);
    await log(id, acme);
    const told = await subscribe(`/v2/requests/${id}/subscription`, {}, acme);
    const own = await connectAs(served.fleet.nats, "operator");
    const manager = await own.jetstreamManager();
    await manager.streams.add({ name: "OTHERS", subjects: ["others"] });
    const targets = ["$JS.API.STREAM.DELETE.OTHERS", "$JS.API.STREAM.PURGE.BATON_TOKENS", "baton.reply.somebody"];
    const heard: string[] = [];
    for (const target of targets) own.subscribe(target, { callback: (_, { subject }) => void heard.push(subject) });
    await own.flush();
    const connection = await openNats(told);
    const place = `BATON_TOKENS.${told.jetstream?.consumer}`;
    const given: Msg[] = [];
    const inbox = `${told.inbox_prefix}.given`;
    connection.subscribe(inbox, { callback: (_, message) => void given.push(message) });
    const ask = JSON.stringify({ batch: targets.length + 1 });
    connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${place}`, ask, { reply: inbox });
    await until(() => given.length === targets.length + 1);
    const [last = "", ...places] = given.map(({ reply }) => reply ?? "");
    for (const [i, target] of targets.entries()) {
      connection.publish(places[i] ?? "", "", { reply: target });
      connection.publish(`$JS.API.CONSUMER.INFO.${place}`, "", { reply: target });
      connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${place}`, JSON.stringify({ batch: 1 }), { reply: target });
    }
    // JetStream has seen all earlier messages once it has answered these requests.
    await connection.request(last, "");
    await connection.request(`$JS.API.CONSUMER.INFO.${place}`);
    expect((await manager.streams.info("OTHERS")).config.name).toBe("OTHERS");
    expect(heard).toEqual([]);
    await manager.streams.delete("OTHERS");
    await Promise.all([connection.close(), own.close()]);
    const again = await subscribe(`/v2/requests/${id}/subscription`, { from: 0 }, acme);
    expect((await readCaptured(again)).texts).toEqual(await log(id, acme));
  });

  it("end when they expire: the server closes the connection, and lets in nobody with them again", async () => {
    const id = await generate(acme);
    const told = await subscribe(`/v2/requests/${id}/subscription`, { ttl: 2_000 }, acme);
    const connection = await openNats(told, "ws", { reconnect: false });
    const ended = await connection.closed();
    expect(ended?.message).toMatch(/Authentication Expired/i);
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(told.expires_at) - SECOND_MS);
    // The server counts whole seconds, and credentials are valid until the end of their last
    // second.
    await until(() => Date.now() > Date.parse(told.expires_at) + SECOND_MS);
    await expect(openNats(told, "nats", { reconnect: false })).rejects.toThrow(
      /Authentication Expired|Authorization Violation/i,
    );
  });
});

describe("records that JetStream keeps", () => {
  it("are there after NATS was killed, and so is the place of a durable reader", async () => {
    const id = await generate(acme);
    const records = await log(id, acme);
    const path = `/v2/requests/${id}/subscription`;
    const first = await subscribe(path, { durable: "over" }, acme);
    expect((await readCaptured(first, 10)).texts).toEqual(records.slice(0, 10));
    const { nats } = served.fleet;
    await nats.kill();
    expect((await askToSubscribe(served.url, path, {}, acme)).body.code).toBe("unavailable");
    await nats.restart();
    const again = await subscribe(path, { durable: "over" }, acme);
    // NATS may have lost the last acknowledgements, and then sends those records again.
    const from = again.jetstream?.from ?? -1;
    expect([again.jetstream?.consumer, from >= 0 && from <= 10]).toEqual([first.jetstream?.consumer, true]);
    expect((await readCaptured(again)).texts).toEqual(records.slice(from));
  });

  it("are kept as gateways say, whatever the jobs process thinks", async () => {
    const own = await connectAs(served.fleet.nats, "operator");
    const { config } = await (await own.jetstreamManager()).streams.info("BATON_TOKENS");
    await own.close();
    expect(config.max_bytes).toBe(268_435_456);
    for (const said of ["records are captured", "the capture of records was changed to these settings"]) {
      expect(served.fleet.jobs[0]?.logged(said)).toBe(0);
    }
  });

  it("have the end of a request that was cancelled", async () => {
    const id = await generate(acme, 2_000);
    expect((await fetch(`${served.url}/v2/requests/${id}`, { method: "DELETE", headers: acme })).status).toBe(204);
    const records = await log(id, acme);
    expect(records.at(-1)).toContain("cancelled");
    const told = await subscribe(`/v2/requests/${id}/subscription`, { from: 0 }, acme);
    expect((await readCaptured(told)).texts).toEqual(records);
  });
});

describe("a gateway that is ready before it has reached NATS", () => {
  const apart = useFleet({
    gateways: 1,
    workers: 0,
    models: [],
    guarded: true,
    env: { BATON_CAPTURE_TTL_MS: "600000" },
  });

  it("answers a subscription when it has made the JetStream stream", async () => {
    const { fleet, url } = apart;
    expect((await askToSubscribe(url, "/v2/subscriptions")).status).toBe(200);
    const own = await connectAs(fleet.nats, "operator");
    const gateway = fleet.gateways[0]?.member;
    await gateway?.kill();
    await (await own.jetstreamManager()).streams.delete("BATON_TOKENS");
    fleet.lines.nats.blackHole("toServer", "toClient");
    await gateway?.start();
    const asked = askToSubscribe(url, "/v2/subscriptions");
    // Without NATS the gateway delays this answer, and serves other clients meanwhile.
    expect((await fetch(`${url}/v2/health/live`)).status).toBe(200);
    fleet.lines.nats.heal();
    const { status, body } = await asked;
    expect([status, body.error, body.jetstream?.stream]).toEqual([200, undefined, "BATON_TOKENS"]);
    await own.close();
  });

  it("has made the JetStream stream before, if NATS answers soon, so that no record comes too early", async () => {
    const { fleet } = apart;
    const own = await connectAs(fleet.nats, "operator");
    const manager = await own.jetstreamManager();
    const gateway = fleet.gateways[0]?.member;
    await gateway?.kill();
    await manager.streams.delete("BATON_TOKENS");
    fleet.lines.nats.delay(40);
    await gateway?.start();
    expect((await manager.streams.info("BATON_TOKENS")).config.name).toBe("BATON_TOKENS");
    fleet.lines.nats.heal();
    await own.close();
  });
});

describe("a deployment without capture, or without credentials for NATS", () => {
  it("has no place in JetStream, and says what is not set up", async () => {
    const env = { BATON_NATS_SIGNING_SEED: "" };
    const fleet = await startFleet({ models: ["gen-mha"], direct: true, env });
    try {
      await fleet.whenServing();
      const [url = ""] = fleet.urls;
      const { status, body } = await askToSubscribe(url, "/v2/subscriptions");
      expect([status, body.code]).toEqual([501, "unsupported"]);
      expect(body.error).toContain("BATON_NATS_SIGNING_SEED");
      // No client could read by labels, so workers publish nothing for labels.
      const own = await connect({ servers: fleet.nats.url });
      const heard: string[] = [];
      own.subscribe("baton.v1.>", { callback: (_, { subject }) => void heard.push(subject) });
      await own.flush();
      const ask = { text_input: "the baton", parameters: { max_tokens: 20 } };
      const { request } = await submitLabelled(url, "gen-mha", ask, { labels: { team: "blue" } });
      const records = await recordsOf(`${url}/v2/requests/${request}/stream`);
      const [token = ""] = request.split(".");
      await until(() => heard.length >= records.length);
      expect(heard).toEqual(records.map(() => `baton.v1.default.gen-mha.${token}`));
      await own.close();
    } finally {
      await fleet.dispose();
    }
  });
});
