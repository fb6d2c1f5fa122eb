/**
 * A worker dies between the last record of a decoupled model's log and the commit. Another worker
 * commits what the log says, and the sequence goes on.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { iterating } from "../../fixtures/iterating.js";
import { GrpcClient, parameters, type Message } from "../../protocols/grpc/client.js";
import { makeModels } from "../../support/fleet/made-model.js";
import { useFleet } from "../../support/fleet/use-fleet.js";

const repository = mkdtempSync(join(tmpdir(), "baton-sealed-"));
afterAll(() => rmSync(repository, { recursive: true }));
makeModels(repository, { "tells-slowly": iterating["tells-slowly"] ?? expect.fail("the model is there") });
const running = useFleet({ repository, models: [], serving: ["tells-slowly"], grpc: true, direct: true });
let client: GrpcClient;
beforeAll(() => {
  client = new GrpcClient(running.fleet.gateways[0]?.grpc ?? "");
});
afterAll(() => client.close());

interface InferAnswer {
  readonly parameters: Readonly<Record<string, { readonly string_param?: string }>>;
  readonly raw_output_contents: readonly Buffer[];
}

const answerIn = (message: Message): InferAnswer => message["infer_response"] as InferAnswer;
const valuesIn = (messages: readonly Message[]) =>
  messages.map((message) => answerIn(message).raw_output_contents[0]?.readFloatLE());

function step(upTo: number, given: Parameters<typeof parameters>[0]): Message {
  return {
    model_name: "tells-slowly",
    id: "sealed",
    inputs: [{ name: "N", datatype: "FP32", shape: [1, 1], contents: { fp32_contents: [upTo] } }],
    parameters: parameters(given),
  };
}

async function ask(message: Message): Promise<readonly Message[]> {
  const stream = client.stream();
  stream.send(message);
  return stream.finish();
}

/** Ends the only open log as a worker does before its commit. @returns the length before */
async function seal(last: object): Promise<number> {
  const logs = await running.redis.keys("log:*");
  const ended = await Promise.all(logs.map((key) => running.redis.hexists(key.replace("log:", "out:"), "kind")));
  const log = logs.find((_, i) => ended[i] === 0) ?? expect.fail("a request is open");
  const index = await running.redis.llen(log);
  await running.redis.rpush(log, JSON.stringify({ index, choices: [], ...last }));
  await running.redis.hset(log.replace("log:", "out:"), "sealed", "1");
  return index;
}

const total = Buffer.alloc(4);
const ends = [
  ["with an answer", { outputs: [{ name: "TOTAL", datatype: "FP32", shape: [1, 1], raw: total.toString("base64") }] }],
  ["with an error", { error: { code: "model_error", message: "it has run too often" } }],
] as const;

describe.each(ends)("a log that ends %s", (_, last) => {
  it.each([
    ["a request without an id", {}],
    ["a step of a sequence", { sequence_id: 9, sequence_start: true }],
  ])("is the answer of %s", async (__, given) => {
    const stream = client.stream();
    stream.send(step(400, given));
    await stream.received(3);
    const [worker] = running.fleet.workers;
    await worker?.kill();
    const isError = "error" in last;
    const length = await seal({ ...last, final: true, reason: isError ? "error" : "finished" });
    await worker?.start();
    const messages = await stream.finish();
    expect(messages).toHaveLength(length + 1);
    const end = messages.at(-1) ?? expect.fail("there is an end");
    if (isError) expect(end["error_message"]).toBe("it has run too often");
    else expect(valuesIn([end])).toEqual([0]);
    // Nothing is left in the way of the next request.
    expect(valuesIn(await ask(step(3, given)))).toEqual([1, 3, 6]);
  });
});
