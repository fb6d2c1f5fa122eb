/** A streamed chat leaves one trace, with the work of the worker and the relay of the gateway. */
import { afterAll, describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { TraceReceiver } from "../support/traces/receiver.js";
import { clientsTrace, named, pathsOf } from "../support/traces/spans.js";

const receiver = await TraceReceiver.start();
afterAll(() => receiver.leave());

const CHAT = "POST /v1/chat/completions";
const STREAM = ["admit", "queue", "process", "prefill", "decode", "commit"];

describe("a fleet with a receiver of traces and a generator", () => {
  const served = useFleet({
    models: ["gen-mha"],
    direct: true,
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: new URL(receiver.url).origin, BATON_TRACE_SAMPLE: "1" },
  });

  function chat(headers: Readonly<Record<string, string>>, more: object = {}): Promise<Response> {
    const messages = [{ role: "user", content: "never told to anybody" }];
    const body = { model: "gen-mha", messages, max_tokens: 6, temperature: 0.5, seed: 3, stream: true, ...more };
    return fetch(`${served.url}/v1/chat/completions`, { method: "POST", body: JSON.stringify(body), headers });
  }

  it("traces a chat from the gateway to the commit and back to the reader", async () => {
    const { traceId, headers } = clientsTrace();
    const answer = await chat(headers);
    expect(await answer.text()).toContain("[DONE]");
    const spans = await receiver.whole(traceId, [CHAT, "relay", ...STREAM]);
    const work = ["prefill", "decode", "commit"].map((name) => `${CHAT} > admit > process > ${name}`);
    const rest = ["admit", "admit > queue", "admit > process", "relay"].map((path) => `${CHAT} > ${path}`);
    expect(pathsOf(spans)).toEqual([CHAT, ...rest, ...work].sort());
    expect(named(spans, CHAT).attributes).toMatchObject({
      "baton.protocol": "openai",
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "baton",
      "gen_ai.request.model": "gen-mha",
      "gen_ai.request.max_tokens": 6,
      "gen_ai.request.temperature": 0.5,
      "gen_ai.request.seed": 3,
      "gen_ai.usage.output_tokens": 6,
    });
    expect(named(spans, "relay").events).toMatchObject([{ name: "first_record", attributes: { "baton.index": 0 } }]);
    expect(named(spans, "commit").attributes).toMatchObject({ "baton.fate": "committed" });
    expect(JSON.stringify(spans, (_, value: unknown) => (typeof value === "bigint" ? "" : value))).not.toContain(
      "told",
    );
  });

  it("traces a request that fails at the gateway or at the worker, with the code of its error", async () => {
    const [atGateway, atWorker] = [clientsTrace(), clientsTrace()];
    expect((await chat(atGateway.headers, { messages: "none" })).status).toBe(400);
    const failed = named(await receiver.whole(atGateway.traceId, [CHAT]), CHAT);
    expect(failed.attributes).toMatchObject({ "http.response.status_code": 400, "error.type": "invalid_argument" });
    const long = [{ role: "user", content: "never told to anybody ".repeat(2_000) }];
    expect((await chat(atWorker.headers, { messages: long })).status).toBe(400);
    const spans = await receiver.whole(atWorker.traceId, [CHAT, "admit", "queue", "process", "commit"]);
    for (const name of [CHAT, "process"]) {
      expect(named(spans, name).attributes).toMatchObject({ "error.type": "invalid_argument" });
    }
  });

  it("samples by the rate if the client says nothing, and names its trace", async () => {
    const answer = await chat({ traceparent: "malformed" }, { stream: false });
    expect(answer.status).toBe(200);
    const [, traceId = ""] = answer.headers.get("traceresponse")?.split("-") ?? [];
    const spans = await receiver.whole(traceId, [CHAT, "relay", ...STREAM]);
    expect(named(spans, CHAT).parentSpanId).toBe("");
  });
});
