/** A step of a tensor model leaves one trace over gateway and worker, with the right parents. */
import { afterAll, describe, expect, it } from "vitest";
import { simple } from "../edition/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { TraceReceiver } from "../support/traces/receiver.js";
import { clientsTrace, named, pathsOf } from "../support/traces/spans.js";

const receiver = await TraceReceiver.start();
afterAll(() => receiver.leave());

const CLOSINGS = /^(full|preferred|enough|shape|sequence|delay|alone|unbatched)$/;
const STEP = ["admit", "queue", "process", "run", "commit"];

describe("a fleet with a receiver of traces", () => {
  const served = useFleet({
    models: ["simple", "accumulate", "slow-sequence"],
    direct: true,
    env: { BATON_TRACE_URL: receiver.url, BATON_TRACE_HEADERS: "x-key=secret of ours", BATON_TRACE_SAMPLE: "0" },
  });

  it("makes all spans of a request whose client records its trace", async () => {
    const { traceId, spanId, headers } = clientsTrace();
    const { status } = await simple(served.url, 3, {}, { ...headers, tracestate: "vendor=1" });
    expect(status).toBe(200);
    const route = "POST /v2/models/{model}/infer";
    const spans = await receiver.whole(traceId, [route, ...STEP]);
    expect(pathsOf(spans)).toEqual(
      [
        route,
        `${route} > admit`,
        `${route} > admit > queue`,
        `${route} > admit > process`,
        `${route} > admit > process > run`,
        `${route} > admit > process > commit`,
      ].sort(),
    );
    const server = named(spans, route);
    expect(server).toMatchObject({ kind: 2, parentSpanId: spanId, traceState: "vendor=1", status: 0 });
    expect(server.attributes).toMatchObject({
      "http.request.method": "POST",
      "http.route": "/v2/models/{model}/infer",
      "http.response.status_code": 200,
      "network.protocol.version": "1.1",
      "baton.protocol": "kserve",
      "baton.model": "simple",
      "baton.version": "1",
      "baton.tenant": "default",
    });
    expect(server.resource).toMatchObject({ "service.name": "baton", "baton.role": "gateway" });
    const admit = named(spans, "admit");
    expect(admit).toMatchObject({ kind: 4 });
    expect(admit.attributes).toMatchObject({
      "messaging.system": "redis",
      "messaging.operation.type": "send",
      "baton.bucket": expect.any(Number),
      "baton.admission.requests": 1,
      "baton.admission.said": "admitted",
    });
    const process = named(spans, "process");
    expect(process).toMatchObject({ kind: 5, traceState: "vendor=1" });
    expect(process.resource).toMatchObject({ "service.name": "baton", "baton.role": "worker" });
    expect(process.attributes).toMatchObject({
      "messaging.operation.type": "process",
      "messaging.batch.message_count": 1,
      "baton.model": "simple",
    });
    expect(named(spans, "commit").attributes).toMatchObject({ "baton.fate": "committed" });
    expect(named(spans, "run").attributes).toMatchObject({ "baton.rows": 1 });
    for (const span of spans) {
      expect(span.attributes["baton.request"]).toBe(admit.attributes["baton.request"]);
      expect(span.endAt, span.name).toBeGreaterThanOrEqual(span.startAt);
    }
    expect(receiver.asked.every((sent) => sent["x-key"] === "secret of ours")).toBe(true);
  });

  it("makes a trace of the batch, with links to the requests and back", async () => {
    const { traceId, headers } = clientsTrace();
    await simple(served.url, 4, {}, headers);
    const process = named(await receiver.whole(traceId, STEP), "process");
    const [link] = process.links;
    const batch = await receiver.whole(link?.traceId ?? "", ["batch", "load states", "run", "commit"]);
    expect(pathsOf(batch)).toEqual(["batch", "batch > commit", "batch > load states", "batch > run"]);
    const whole = named(batch, "batch");
    expect(whole).toMatchObject({ spanId: link?.spanId, links: [{ traceId, spanId: process.spanId }] });
    expect(whole.attributes).toMatchObject({
      "baton.batch.rows": 1,
      "baton.batch.requests": 1,
      "baton.batch.closed_by": expect.stringMatching(CLOSINGS) as string,
      "baton.provider": "cpu",
    });
  });

  it("says from where the batch had its states", async () => {
    const step = async (start: boolean) => {
      const { traceId, headers } = clientsTrace();
      const body = { parameters: { sequence_id: 72, sequence_start: start }, inputs: [numberTensor(1)] };
      expect((await infer(served.url, "accumulate", body, headers)).status).toBe(200);
      const [link] = named(await receiver.whole(traceId, STEP), "process").links;
      const batch = await receiver.whole(link?.traceId ?? "", ["batch", "load states", "run", "commit"]);
      expect(named(batch, "run").attributes).toMatchObject({ "baton.runs": 1 });
      return named(batch, "load states").attributes;
    };
    expect(await step(true)).toMatchObject({ "baton.state.start": 1, "baton.state.memory": 0, "baton.state.redis": 0 });
    expect(await step(false)).toMatchObject({
      "baton.state.start": 0,
      "baton.state.memory": 1,
      "baton.state.redis": 0,
    });
  });

  it("counts the wait behind earlier steps of the sequence as the wait in the queue", async () => {
    const sequence = { sequence_id: 71 };
    const step = (value: number, headers: Readonly<Record<string, string>>, start = false) => {
      const inputs = [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [value] }];
      const body = { parameters: { ...sequence, sequence_start: start }, inputs };
      return infer(served.url, "slow-sequence", body, headers);
    };
    await step(1, {}, true);
    const traces = Array.from({ length: 4 }, () => clientsTrace());
    const answers = await Promise.all(traces.map(({ headers }, i) => step(i, headers)));
    expect(answers.map(({ status }) => status)).toEqual(traces.map(() => 200));
    const whole = await Promise.all(traces.map(({ traceId }) => receiver.whole(traceId, STEP)));
    // Several connections bring the steps in any order.
    const steps = whole.sort((one, other) => (named(one, "run").startAt < named(other, "run").startAt ? -1 : 1));
    for (const [i, spans] of steps.entries()) {
      expect(named(spans, "process").attributes).toMatchObject({ "baton.sequence": "71", "baton.step": i + 2 });
      const earlier = steps[i - 1];
      if (earlier === undefined) continue;
      expect(named(spans, "queue").startAt).toBeLessThan(named(earlier, "run").endAt);
      expect(named(spans, "queue").endAt).toBeGreaterThanOrEqual(named(earlier, "run").endAt);
    }
  });

  it("takes a retry under an Idempotency-Key with another traceparent for the same request", async () => {
    const key = { "idempotency-key": "one and the same" };
    const [first, second, third] = [clientsTrace(), clientsTrace(), clientsTrace("00")];
    const asked = [];
    for (const { headers } of [first, second, third]) {
      asked.push(await simple(served.url, 5, {}, { ...headers, ...key }));
    }
    expect(asked).toEqual([asked[0], asked[0], asked[0]]);
    expect(asked[0]?.status).toBe(200);
    const again = await receiver.whole(second.traceId, ["POST /v2/models/{model}/infer", "admit"]);
    expect(again.map(({ name }) => name).sort()).toEqual(["POST /v2/models/{model}/infer", "admit"]);
    expect(named(again, "admit").attributes["baton.admission.said"]).toBe("known");
    expect(receiver.of(third.traceId)).toEqual([]);
  });

  it("names the trace in the answer, and the error of a refusal in the span", async () => {
    const { traceId, headers } = clientsTrace();
    const good = await infer(served.url, "accumulate", { inputs: [numberTensor(1)] }, headers);
    expect(good.status).toBe(400);
    const [, trace, span] = good.headers.get("traceresponse")?.split("-") ?? [];
    expect(trace).toBe(traceId);
    const server = named(
      await receiver.whole(traceId, ["POST /v2/models/{model}/infer"]),
      "POST /v2/models/{model}/infer",
    );
    expect(server).toMatchObject({ spanId: span, status: 2 });
    expect(server.attributes).toMatchObject({ "http.response.status_code": 400, "error.type": "invalid_argument" });
  });

  it.each([
    ["malformed", "vendor=\u00e9", /^$/],
    ["without a member", ",,", /^$/],
    ["one member of 8 KB", `vendor=${"x".repeat(8_192)}`, /^$/],
    [
      "8 KB of members",
      Array.from({ length: 400 }, (_, i) => `vendor${i}=${"x".repeat(10)}`).join(","),
      /^vendor0=x{10},.*x{10}$/,
    ],
  ])("keeps the trace of a request whose tracestate is %s", async (_, tracestate, kept) => {
    const { traceId, headers } = clientsTrace();
    const answer = await simple(served.url, 6, {}, { ...headers, tracestate });
    expect(answer.status).toBe(200);
    const { traceState } = named(await receiver.whole(traceId, STEP), "process");
    expect(traceState.length).toBeLessThanOrEqual(512);
    expect(traceState).toMatch(kept);
  });

  it.each([
    ["a client that records nothing", `00-${"ab".repeat(16)}-${"cd".repeat(8)}-00`],
    ["a version that cannot be", `ff-${"ab".repeat(16)}-${"cd".repeat(8)}-01`],
    ["a client without words", ""],
    ["a span without an id", `00-${"ab".repeat(16)}-${"0".repeat(16)}-01`],
    ["a version that has more than it may", `00-${"ab".repeat(16)}-${"cd".repeat(8)}-01-more`],
    ["a trace without an id", `00-${"0".repeat(32)}-${"cd".repeat(8)}-01`],
    ["8 KB", `00-${"ab".repeat(4_000)}-${"cd".repeat(8)}-01`],
  ])("answers without a trace to the traceparent of %s", async (_, traceparent) => {
    const body = {
      inputs: ["INPUT0", "INPUT1"].map((name) => ({
        name,
        datatype: "INT32",
        shape: [1, 16],
        data: Array(16).fill(1),
      })),
    };
    const answer = await infer(served.url, "simple", body, { traceparent });
    expect([answer.status, answer.headers.get("traceresponse")]).toEqual([200, null]);
  });
});

function numberTensor(value: number): object {
  return { name: "INPUT", datatype: "INT32", shape: [1, 1], data: [value] };
}

function infer(url: string, model: string, body: object, headers: Readonly<Record<string, string>>): Promise<Response> {
  return fetch(`${url}/v2/models/${model}/infer`, { method: "POST", body: JSON.stringify(body), headers });
}
