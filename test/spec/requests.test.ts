/**
 * `/v2/requests/<id>`: its state, its end by a client, and requests without a waiting client, at a
 * gateway in this process with real brokers behind it.
 */
import { anyOwner } from "../../gateway/auth/owner/owner.js";
import { Caller } from "../../gateway/service/caller.js";
import { request as httpRequest } from "node:http";
import { describe, expect, it } from "vitest";
import { DEFAULT_TENANT } from "#shared/contract/tenant.js";
import { encodeFrame } from "#shared/frame.js";
import { encodeRequestId } from "#shared/queue/address.js";
import { logKey, outcomeKey } from "#shared/queue/keys.js";
import { requestAddress } from "../../gateway/admission/request-id.js";
import { RequestService } from "../../gateway/service/requests.js";
import { asked } from "../fixtures/generation.js";
import { inferPath, int32Input, textInput } from "../fixtures/requests.js";
import { asEvents, lastRecord, recordAt, wholeStream } from "../fixtures/token-records.js";
import { exchange } from "../support/gateway/http.js";
import { PLACE } from "../support/streams/relay.js";
import { listen, ofNoFleet, useRequestLab } from "../support/streams/request-lab.js";
import { Writer } from "../support/streams/writer.js";
import { until } from "../support/until.js";

const lab = useRequestLab();

describe("a request's state", () => {
  const stateOf = async (path: string) => {
    const { status, json } = await exchange(`${lab().gateway.url}${path}`, "", {}, "GET");
    expect(status).toBe(200);
    return JSON.parse(json) as Record<string, unknown>;
  };

  it("goes from queued to completed, with the answer put together", async () => {
    const { stream, writer, path } = await lab().begin();
    expect(await stateOf(path)).toEqual({
      id: stream.id,
      model_name: "talker",
      model_version: "1",
      subject: `baton.v1.default.talker.${stream.id.split(".")[0]}`,
      state: "queued",
      admitted_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
      began_at: null,
      ended_at: null,
    });
    await writer.append(recordAt(0));
    await lab().streams.redis.hset(outcomeKey(writer.address), "began", String(Date.now()));
    expect(await stateOf(path)).toMatchObject({ state: "running", began_at: expect.any(String) as string });
    const other = { index: 1, text: "zwei", tokens: [3], finish_reason: "length" as const };
    await writer.append(recordAt(1, { choices: [other] }), lastRecord(2));
    await writer.give({ kind: "result", body: Buffer.from("whatever") });
    expect(await stateOf(path)).toMatchObject({
      state: "completed",
      ended_at: expect.any(String) as string,
      outcome: {
        choices: [
          { index: 0, text: "t0 é", finish_reason: "stop" },
          { index: 1, text: "zwei", finish_reason: "length" },
        ],
        usage: { prompt_tokens: 1, completion_tokens: 2 },
      },
    });
  });

  it("is completed as soon as the final record is there", async () => {
    const { writer, path } = await lab().begin();
    await writer.append(recordAt(0), lastRecord(1));
    await lab().streams.redis.hset(outcomeKey(writer.address), "began", String(Date.now()), "sealed", "1");
    expect(await stateOf(path)).toMatchObject({ state: "completed", outcome: { choices: [{ text: "t0 é" }] } });
  });

  it("is without an answer where the log is gone", async () => {
    const { writer, path } = await lab().begin();
    await writer.write(...wholeStream(3));
    await writer.give({ kind: "result", body: Buffer.from(lastRecord(2)) });
    await writer.destroy("log");
    const state = await stateOf(path);
    expect([state["state"], state["outcome"]]).toEqual(["completed", undefined]);
  });

  it("has tensors as infer would have answered, and errors as they are", async () => {
    const done = await lab().foreign("adder");
    const data = Buffer.alloc(8);
    data.writeBigInt64LE(2n ** 53n + 1n);
    const tensor = { name: "SUM", datatype: "INT64", shape: [1], data } as const;
    await done.writer.give({ kind: "result", body: encodeFrame({}, [tensor]) });
    const { json } = await exchange(`${lab().gateway.url}/v2/requests/${done.id}`, "", {}, "GET");
    expect(json).toContain('"state":"completed"');
    expect(json).not.toContain("subject");
    expect(json).toContain(
      '"outcome":{"model_name":"adder","model_version":"1","outputs":[{"name":"SUM","datatype":"INT64","shape":[1],"data":[9007199254740993]}]}',
    );
    for (const [code, state] of [
      ["model_error", "failed"],
      ["expired", "expired"],
      ["cancelled", "cancelled"],
    ] as const) {
      const { id, writer } = await lab().foreign("adder");
      await writer.give({ kind: "error", code, message: "why" });
      expect(await stateOf(`/v2/requests/${id}`)).toMatchObject({ state, outcome: { error: "why", code } });
    }
  });

  it("is unavailable while Redis is away", async () => {
    const { path } = await lab().begin();
    lab().streams.fleet.lines.gatewayRedis.blackHole("toServer", "toClient");
    try {
      const { status, headers } = await exchange(`${lab().gateway.url}${path}`, "", {}, "GET");
      expect([status, headers["retry-after"]]).toEqual([503, "1"]);
    } finally {
      lab().streams.fleet.lines.gatewayRedis.heal();
      await until(() => lab().relayed.redis.status === "ready");
    }
  });
});

describe("cancelling", () => {
  const cancel = async (path: string) => {
    const { status, json } = await exchange(`${lab().gateway.url}${path}`, "", {}, "DELETE");
    return { status, body: json === "" ? undefined : (JSON.parse(json) as unknown) };
  };

  it("ends a stream for all its readers, and says so as often as it is asked", async () => {
    const { writer, path } = await lab().begin();
    const reading = await listen(`${lab().gateway.url}${path}/events`);
    await writer.write(recordAt(0));
    expect([await cancel(path), await cancel(path)]).toEqual([{ status: 204 }, { status: 204 }]);
    expect(await reading.ended).toBe(
      asEvents([
        recordAt(0),
        `{"index":1,"choices":[],"final":true,"reason":"cancelled","error":{"code":"cancelled","message":"the request was cancelled"}}`,
      ]),
    );
  });

  it("does not shorten the time for which the request's key is remembered", async () => {
    const { writer, path } = await lab().begin();
    expect(await cancel(path)).toEqual({ status: 204 });
    for (const key of [outcomeKey(writer.address), logKey(writer.address)]) {
      expect(await lab().streams.redis.pttl(key)).toBeGreaterThan(10_000);
    }
  });

  it("comes too late for what has ended, and is refused for what was never there", async () => {
    const { writer, path } = await lab().begin();
    await writer.write(...wholeStream(2));
    expect(await cancel(path)).toEqual({
      status: 409,
      body: { error: "the request has ended", code: "already_ended", state: "completed" },
    });
    expect(await cancel("/v2/requests/x.0.1.talker")).toMatchObject({ status: 404 });
  });

  it("takes requests of models that nobody knows any more, and gives no stream to one that had none", async () => {
    const { id, writer } = await lab().foreign("unknown");
    expect(await cancel(`/v2/requests/${id}`)).toEqual({ status: 204 });
    expect(await lab().streams.redis.exists(logKey(writer.address))).toBe(0);
    const streaming = await lab().foreign("unknown");
    await streaming.writer.write(recordAt(0));
    expect(await cancel(`/v2/requests/${streaming.id}`)).toEqual({ status: 204 });
    expect(await lab().streams.redis.llen(logKey(streaming.writer.address))).toBe(2);
  });
});

it("detaching lets a stream run on without readers", async () => {
  const { writer, path } = await lab().begin();
  expect((await writer.fields())["wanted"]).toBeDefined();
  for (let i = 0; i < 2; i++) expect((await exchange(`${lab().gateway.url}${path}/detach`)).status).toBe(204);
  expect((await writer.fields())["wanted"]).toBeUndefined();
  expect((await exchange(`${lab().gateway.url}/v2/requests/x.0.1.talker/detach`)).status).toBe(404);
});

describe("a whole answer under an Idempotency-Key", () => {
  it.each([
    ["/v1/completions", { model: "talker", prompt: "once" }],
    ["/v2/models/talker/generate", { text_input: "once" }],
    ["/v2/models/talker/infer", { inputs: [textInput("once")] }],
  ])("by %s is made to its end though its client leaves, and its retry finds it", async (path, body) => {
    const headers = { "idempotency-key": path };
    const address = requestAddress(asked({ idempotencyKey: path }), PLACE);
    const writer = new Writer(lab().streams, encodeRequestId(address));
    const sent = httpRequest(`${lab().gateway.url}${path}`, { method: "POST", headers, agent: false });
    sent.on("error", () => undefined);
    sent.end(JSON.stringify(body));
    await until(() => lab().relayed.relay.liveStream(address)?.hasReaders === true);
    sent.destroy();
    await until(() => lab().relayed.relay.liveStream(address)?.hasReaders !== true);
    const facts = await writer.fields();
    expect([facts["wanted"], facts["kind"]]).toEqual([undefined, undefined]);
    await writer.write(...wholeStream(3));
    const { status, json } = await exchange(lab().gateway.url + path, body, headers);
    expect([status, json]).toEqual([200, expect.stringContaining("t0 ét1 é")]);
  });
});

describe("Prefer: respond-async", () => {
  const inputs = [int32Input()];
  const post = (prefer: string, model = "adder", body: object = { inputs }) =>
    exchange(lab().gateway.url + inferPath(model), body, { prefer });

  it.each(["respond-async", "wait=10, Respond-Async", "respond-async; x=1"])(
    "'%s' is answered at once",
    async (prefer) => {
      const { status, headers, json } = await post(prefer);
      const { id } = JSON.parse(json) as { id: string };
      expect([status, JSON.parse(json)]).toEqual([202, { id, state: "queued" }]);
      expect(headers).toMatchObject({ location: `/v2/requests/${id}`, "preference-applied": "respond-async" });
      const asked = await exchange(`${lab().gateway.url}${headers["location"] ?? ""}`, "", {}, "GET");
      expect(JSON.parse(asked.json)).toMatchObject({ id, state: "queued", model_name: "adder" });
      await new Writer(lab().streams, id).give({ kind: "error", code: "model_error", message: "x" });
      const after = await exchange(`${lab().gateway.url}/v2/requests/${id}`, "", {}, "GET");
      expect(JSON.parse(after.json)).toMatchObject({ state: "failed", outcome: { code: "model_error" } });
    },
  );

  it("takes a generator's request too, which nobody needs to read", async () => {
    const text = [textInput("once")];
    const { status, json } = await post("respond-async", "talker", { inputs: text });
    expect(status).toBe(202);
    const writer = new Writer(lab().streams, (JSON.parse(json) as { id: string }).id);
    expect((await writer.fields())["wanted"]).toBeUndefined();
  });

  it("is refused as any other request is", async () => {
    expect((await post("respond-async", "adder", { inputs: [] })).status).toBe(400);
    expect((await post("respond-async", "nobody")).status).toBe(404);
  });
});

describe("another tenant", () => {
  it("finds no request under an id that is not its own, and changes nothing by trying", async () => {
    const { redis, bus, relay } = lab().relayed;
    const requests = new RequestService({ redis, bus, relay, ...ofNoFleet, outcomeTtlMs: 10_000 });
    const { stream, writer } = await lab().begin();
    const before = await writer.fields();
    const unknown = { code: "unknown_request" };
    const other = Caller.of(anyOwner("other"));
    await expect(requests.open(other, stream.id, 0)).rejects.toMatchObject(unknown);
    await expect(requests.status(other, stream.id)).rejects.toMatchObject(unknown);
    await expect(requests.cancel(other, stream.id)).rejects.toMatchObject(unknown);
    await expect(requests.detach(other, stream.id)).rejects.toMatchObject(unknown);
    expect(await writer.fields()).toEqual(before);
    expect((await requests.status(Caller.of(anyOwner(DEFAULT_TENANT)), stream.id)).state).toBe("queued");
    await stream.cancel();
  });

  it("reads its own stream under the same key, though both are followed by one gateway", async () => {
    const own = await lab().relayed.generate(asked({ idempotencyKey: "same" }));
    const foreign = await lab().relayed.generate(asked({ idempotencyKey: "same", tenant: "other" }));
    const writer = new Writer(lab().streams, own.id);
    const address = { ...writer.address, tenant: "other" };
    expect(lab().relayed.relay.liveStream(writer.address)).toBeDefined();
    // The same public id under another tenant is another stream.
    expect(lab().relayed.relay.liveStream(address)).toBeUndefined();
    expect(foreign.id).not.toBe(own.id);
    await Promise.all([own.cancel(), foreign.cancel()]);
  });
});
