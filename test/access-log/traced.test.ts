/** A sampled request has all facts in its line, and its trace. */
import { join } from "node:path";
import { expect, it } from "vitest";
import { simpleBody } from "../jobs/ask.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { lineOf, logFolder } from "./lines.js";

const path = join(logFolder(), "traced.log");
// No receiver takes the spans, which is no matter of the requests.
const traces = { BATON_TRACE_URL: "http://127.0.0.1:9/v1/traces", BATON_TRACE_SAMPLE: "1" };
const served = useFleet({
  models: ["simple", "tale-gpt"],
  direct: true,
  env: { BATON_ACCESS_LOG: path, ...traces },
});

const simple = JSON.stringify(simpleBody(21));
const prompt = JSON.stringify({ model: "tale-gpt", prompt: "Once", max_tokens: 4, temperature: 0 });

it.each<[string, string, string, Readonly<Record<string, string>>]>([
  ["socket", "/v2/models/simple/infer", simple, {}],
  ["node", "/v2/models/simple/infer", simple, { "content-encoding": "identity" }],
  ["framework", "/v2/models/simple/infer?a=1", simple, {}],
  ["generation", "/v1/completions", prompt, {}],
])("by each way: %s", async (id, target, body, headers) => {
  const answer = await fetch(served.url + target, {
    method: "POST",
    body,
    headers: { "x-request-id": id, ...headers },
  });
  await answer.text();
  const line = await lineOf(path, id);
  expect(answer.headers.get("traceresponse")?.split("-")[1]).toBe(line?.["trace"]);
  expect(line?.["trace"]).toMatch(/^[0-9a-f]{32}$/);
  expect(line?.["request"]).toMatch(/\.(?:simple|tale-gpt)$/);
  expect(line?.["replayed"]).toBe(false);
  expect(line).toMatchObject({ queue_ms: expect.any(Number), run_ms: expect.any(Number) } satisfies object);
  expect(line?.["worker"]).toMatch(/^worker/);
});
