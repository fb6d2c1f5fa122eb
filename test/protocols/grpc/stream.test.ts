/** ModelStreamInfer: order, sequences, generators, errors, keys and resuming. */
import { afterAll, describe, expect, it } from "vitest";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { GrpcClient, int32s, parameters, type Message } from "./client.js";

const running = useFleet({
  models: ["echo-int32", "accumulate", "slow", "gen-mha"],
  gateways: 2,
  direct: true,
  grpc: true,
  env: { BATON_SEQUENCE_BACKLOG: "4" },
});
const opened: GrpcClient[] = [];
const client = (gateway = 0): GrpcClient =>
  (opened[gateway] ??= new GrpcClient(running.fleet.gateways[gateway]?.grpc ?? ""));
afterAll(() => opened.forEach((one) => one.close()));

const echo = (id: string, value: number): Message => ({
  model_name: "echo-int32",
  id,
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1] }],
  raw_input_contents: [int32s(value)],
});

const step = (sequence: number, value: number, more: Parameters<typeof parameters>[0] = {}): Message => ({
  ...echo(`${sequence}/${value}`, value),
  model_name: "accumulate",
  parameters: parameters({ sequence_id: sequence, ...more }),
});

const textIn = (message: Message | undefined): string => {
  const [raw] = answerIn(message).raw_output_contents as Buffer[];
  return raw === undefined ? "" : raw.subarray(4).toString();
};

interface InferAnswer {
  readonly id: string;
  readonly model_name: string;
  readonly parameters: Readonly<Record<string, Message>>;
  readonly raw_output_contents: readonly Buffer[];
}

function answerIn(message: Message | undefined): InferAnswer {
  return message?.["infer_response"] as InferAnswer;
}

const generate = (more: Message = {}): Message => ({
  model_name: "gen-mha",
  id: "g",
  inputs: [{ name: "text_input", datatype: "BYTES", shape: [1, 1], contents: { bytes_contents: [Buffer.from("ab")] } }],
  parameters: parameters({ max_tokens: 20, temperature: 0, ignore_eos: true }),
  ...more,
});

describe("a stream", () => {
  it("answers in the order of its requests, each with its final flag", async () => {
    const stream = client().stream();
    for (let i = 0; i < 50; i++) stream.send(echo(String(i), i));
    const messages = await stream.finish();
    expect(messages.map((message) => answerIn(message).id)).toEqual(Array.from({ length: 50 }, (_, i) => String(i)));
    expect(messages.map((message) => answerIn(message).raw_output_contents[0]?.readInt32LE())).toEqual(
      Array.from({ length: 50 }, (_, i) => i),
    );
    for (const message of messages) {
      expect(message["error_message"]).toBe("");
      expect(answerIn(message).parameters["triton_final_response"]).toMatchObject({ bool_param: true });
    }
    expect((await stream.ended).code).toBe(0);
  });

  it("admits the steps of a sequence in its order, and holds back more than may wait", async () => {
    const stream = client().stream();
    const steps = 200;
    for (let i = 1; i <= steps; i++) {
      stream.send(step(11, i, { sequence_start: i === 1, sequence_end: i === steps }));
    }
    const messages = await stream.finish();
    const sums = messages.map((message) => answerIn(message).raw_output_contents[0]?.readInt32LE());
    expect(sums).toEqual(Array.from({ length: steps }, (_, i) => ((i + 1) * (i + 2)) / 2));
  });

  it("holds later answers back behind a slow one, unless its client gives up the order", async () => {
    const slow = (rounds: number): Message => ({
      model_name: "slow",
      id: "slow",
      inputs: [{ name: "N", datatype: "INT64", shape: [1], contents: { int64_contents: [rounds] } }],
    });
    const idsOf = (messages: readonly Message[]) => messages.map((message) => answerIn(message).id);
    const ordered = client().stream();
    ordered.send(slow(500));
    ordered.send(echo("quick", 1));
    expect(idsOf(await ordered.finish())).toEqual(["slow", "quick"]);
    const unordered = client().stream({ "baton-unordered": "true" });
    unordered.send(slow(10_000));
    unordered.send(echo("quick", 2));
    expect(idsOf(await unordered.received(1))).toEqual(["quick"]);
    unordered.call.cancel();
  });

  it("has keys for single requests alone", async () => {
    const stream = client().stream({ "idempotency-key": "of-no-request" });
    stream.send(echo("a", 1));
    stream.send(echo("b", 2));
    const messages = await stream.finish();
    expect(messages.map((message) => answerIn(message).raw_output_contents[0]?.readInt32LE())).toEqual([1, 2]);
    for (const message of messages) expect(answerIn(message).parameters).not.toHaveProperty("response_index");
  });

  it("goes on after an error, which has a text, the request's id and Baton's code", async () => {
    const stream = client().stream();
    stream.send({ ...echo("bad", 1), model_name: "none" });
    stream.send(echo("good", 2));
    const [bad, good] = await stream.finish();
    expect(bad).toMatchObject({
      error_message: "Request for unknown model: 'none' is not found",
      infer_response: { id: "bad", model_name: "", parameters: { baton_code: { string_param: "unknown_model" } } },
    });
    expect(answerIn(good).id).toBe("good");
  });

  it("answers a generator in parts, of which the last is final", async () => {
    const whole = await client().call("ModelInfer", generate());
    expect(whole.details).toBe("");
    const answer = whole.message ?? expect.fail("the model answers");
    const [raw] = answer["raw_output_contents"] as [Buffer];
    const text = raw.subarray(4).toString();
    const stream = client().stream();
    stream.send(generate());
    const messages = await stream.finish();
    expect(messages.map(textIn).join("")).toBe(text);
    expect(messages.length).toBeGreaterThan(1);
    const finals = messages.map((message) => answerIn(message).parameters["triton_final_response"]?.["bool_param"]);
    expect(finals.slice(0, -1)).not.toContain(true);
  });

  it("is resumed under its key at another gateway", async () => {
    const keyed = (more: Parameters<typeof parameters>[0] = {}): Message =>
      generate({
        parameters: parameters({ max_tokens: 20, temperature: 0, ignore_eos: true, idempotency_key: "k1", ...more }),
      });
    const first = client(0).stream();
    first.send(keyed());
    const all = await first.finish();
    const indexes = all.map((message) => Number(answerIn(message).parameters["response_index"]?.["int64_param"]));
    expect(indexes[0]).toBe(0);
    expect(indexes).toEqual(indexes.toSorted((a, b) => a - b));
    const second = client(1).stream();
    second.send(keyed({ resume_after: indexes[4] ?? 0 }));
    const rest = await second.finish();
    expect(rest.map(textIn).join("")).toBe(all.slice(5).map(textIn).join(""));
    const third = client(1).stream();
    third.send(keyed({ resume_after: 9_999 }));
    const [ahead] = await third.finish();
    expect(answerIn(ahead).parameters["baton_code"]).toMatchObject({ string_param: "ahead_of_log" });
  });
});
