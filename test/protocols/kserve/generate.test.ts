/**
 * `generate` and `generate_stream`, Triton's generate extension, on generators and on tensor
 * models.
 */
import { describe, expect, it } from "vitest";
import { InferenceError } from "#shared/errors.js";
import { useGateway, generators } from "../../support/gateway/test-gateway.js";
import { type Answer, exchange, expectRefusal, type Body } from "../../support/gateway/http.js";
import { generatorModel, servedModel } from "../../fixtures/served-models.js";
import { delta, failedRecord, finalRecord, record } from "../../fixtures/token-records.js";
import { eventsIn } from "../../support/streams/event-source.js";

const both = (name: string, datatype: "INT32" | "FP32" | "BYTES" | "BOOL" | "FP16", dims: number[]) => ({
  inputs: [{ name: "INPUT0", datatype, dims }],
  outputs: [{ name: "OUTPUT0", datatype, dims }],
  name,
});
const models = [
  both("ints", "INT32", [-1]),
  both("pairs", "INT32", [2, -1]),
  both("strings", "BYTES", [-1]),
  both("halves", "FP16", [-1]),
].map(({ name, ...model }) => servedModel(name, model));
const gateway = useGateway({
  models: [
    ...generators,
    ...models,
    servedModel("batched", { ...both("batched", "FP32", [3]), maxBatchSize: 4 }),
    servedModel("two", {
      inputs: ["INPUT0", "INPUT1"].map((name) => ({ name, datatype: "BOOL", dims: [1] })),
      outputs: ["OUTPUT0", "OUTPUT1"].map((name) => ({ name, datatype: "BOOL", dims: [1] })),
    }),
    servedModel("seq", { sequence: { maxIdleMs: 1000 } }),
    generatorModel("tuned", { defaults: { temperature: 0.5, maxTokens: 100 } }),
  ],
});

const post = (path: string, body: Body, headers: Record<string, string> = {}): Promise<Answer> =>
  exchange(`${gateway.url}/v2/models/${path}`, body, headers);

const generate = (body: object, headers?: Record<string, string>): Promise<Answer> =>
  post("talk/generate", body, headers);
const stream = (body: object): Promise<Answer> => post("talk/generate_stream", body);

const texts = (answer: Answer): unknown[] =>
  eventsIn(answer.json).map(({ data }) => (JSON.parse(data) as { text_output: unknown }).text_output);

// prettier-ignore
const triton = "generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses";

describe("generate on a generator", () => {
  it("gives one flat object", async () => {
    const answer = await generate({ text_input: "Once", id: "7" });
    expect(answer.json).toBe('{"model_name":"talk","model_version":"1","id":"7","text_output":"Hello, you!"}');
    expect(answer.headers).toMatchObject({ "content-type": "application/json", "baton-request-id": "r0.0.1.talk" });
    expect(gateway.only().request).toMatchObject({
      tenant: "default",
      sequence: undefined,
      idempotencyKey: undefined,
      background: false,
      deadlineMs: 600_000,
      spec: { prompt: { kind: "text", text: "Once" }, sampling: { temperature: 1, maxTokens: null, logprobs: null } },
    });
  });

  it.each([
    ["beside the text", { text_input: "a", temperature: 0, max_tokens: 5, stop: ["x"] }],
    ["in parameters", { text_input: "a", parameters: { temperature: 0, max_tokens: 5, stop: "x" } }],
    ["all in parameters", { parameters: { text_input: "a", temperature: 0, max_tokens: 5, stop: "x" } }],
    ["as strings", { text_input: ["a"], temperature: "0.0", max_tokens: "5", stop: "x" }],
    ["in one string", { text_input: "a", sampling_parameters: '{"temperature":"0","max_tokens":5,"stop":["x"]}' }],
    // prettier-ignore
    ["in one string and beside it", { text_input: "a", max_tokens: 5, sampling_parameters: '{"temperature":0,"max_tokens":9,"stop":["x"]}' }],
  ])("takes parameters %s", async (_, body) => {
    expect((await generate(body)).status).toBe(200);
    expect(gateway.only().request.spec).toMatchObject({
      prompt: { text: "a" },
      sampling: { temperature: 0, maxTokens: 5, stop: ["x"] },
    });
  });

  it("takes the model's defaults, and a version in the path", async () => {
    await post("tuned/versions/1/generate", { text_input: "a" });
    expect(gateway.only().request.spec.sampling).toMatchObject({ temperature: 0.5, maxTokens: 100 });
  });

  it("repeats the prompt where it is asked to", async () => {
    const { json } = await generate({ text_input: "Once", exclude_input_in_output: false });
    expect(JSON.parse(json)).toMatchObject({ text_output: "OnceHello, you!" });
  });

  it("gives several choices as a list", async () => {
    gateway.script = (_, stream) =>
      void stream.append(
        finalRecord(0, 2, delta("a", { finish_reason: "stop" }), delta("b", { index: 1, finish_reason: "stop" })),
      );
    expect(JSON.parse((await generate({ text_input: "Once", n: 2 })).json)).toMatchObject({ text_output: ["a", "b"] });
  });

  it("is a turn of a conversation, keyed and with a deadline of its own", async () => {
    await generate(
      { text_input: "a", sequence_id: "42", sequence_start: true, timeout: 5_000_000 },
      { "idempotency-key": "k" },
    );
    expect(gateway.only().request).toMatchObject({
      sequence: { id: { kind: "string", value: "42" }, start: true, end: false },
      deadlineMs: 5_000,
      idempotencyKey: "k",
    });
  });

  it("with stream gives one response or, in Triton's way, none", async () => {
    expect(JSON.parse((await generate({ text_input: "a", stream: true })).json)).toEqual({
      error: triton,
      code: "invalid_argument",
    });
    gateway.script = (_, stream) => void stream.append(finalRecord(0, 1, delta("a", { finish_reason: "stop" })));
    const one = await generate({ text_input: "a", stream: true });
    expect([one.status, JSON.parse(one.json)]).toMatchObject([200, { text_output: "a" }]);
    gateway.script = (_, stream) => void stream.append(finalRecord(0, 1, delta("", { finish_reason: "stop" })));
    const empty = await generate({ text_input: "a", stream: true });
    expect([empty.status, JSON.parse(empty.json)]).toMatchObject([200, { text_output: "" }]);
  });

  it("is answered with an id at once where the client prefers to come back", async () => {
    gateway.script = () => undefined;
    for (const path of ["generate", "generate_stream"]) {
      const answer = await post(`talk/${path}`, { text_input: "a" }, { prefer: "respond-async" });
      expect([answer.status, gateway.streams.at(-1)?.request.background]).toEqual([202, true]);
    }
  });

  // prettier-ignore
  it.each<[string, object | string | Buffer, string]>([
    ["no text", { max_tokens: 5 }, "[request id: <id_unknown>] expected 1 inputs but got 0 inputs for model 'talk'. Got input(s) [], but missing required input(s) ['text_input']. Please provide all required input(s)."],
    ["empty text", { text_input: "" }, "text_input must not be empty"],
    ["text of another kind", { text_input: 5 }, "Unable to parse 'data': attempt to access JSON non-string as string"],
    ["two texts", { text_input: ["a", "b"] }, "The schema can not convert input 'text_input' to tensor with proper shape"],
    ["text twice", { id: "7", text_input: "a", parameters: { text_input: "a" } }, "[request id: 7] input 'text_input' already exists in request"],
    ["too long a text", { text_input: "a".repeat(1_048_577) }, "text_input has 1048577 bytes, more than the limit of 1048576"],
    ["too many tokens", { text_input: "a", max_tokens: 1e9 }, "max_tokens must be a whole number from 1 to 4096, got 1000000000"],
    ["text for a number", { text_input: "a", temperature: "warm" }, 'temperature must be a number from 0 to 100, got "warm"'],
    ["too many choices", { text_input: "a", n: 1e6 }, "n must be a whole number from 1 to 8, got 1000000"],
    ["choices in a conversation", { text_input: "a", n: 2, sequence_id: 5 }, "n must be 1 for a turn of a conversation, got 2"],
    ["too long a time", { text_input: "a", total_timeout: 3_600_000_001 }, "total_timeout must be a whole number from 0 to 3600000000, got 3600000001"],
    ["a time that is none", { text_input: "a", total_timeout: -1 }, "total_timeout must be a whole number from 0 to 3600000000, got -1"],
    ["a broken string of parameters", { text_input: "a", sampling_parameters: "{" }, "sampling_parameters must be the text of a JSON object"],
    ["parameters that are none", { text_input: "a", parameters: 5 }, "Unable to parse 'parameters': attempt to access JSON non-object as object"],
    ["an id that is none", { text_input: "a", id: 5 }, "Unable to parse 'id': attempt to access JSON non-string as string"],
  ])("refuses %s", async (_, body, message) => {
    for (const path of ["generate", "generate_stream"]) {
      expectRefusal(await post(`talk/${path}`, body), "invalid_argument", message);
    }
    expect(gateway.streams).toHaveLength(0);
  });

  // prettier-ignore
  it.each<[name: string, refused: readonly unknown[], taken: readonly unknown[]]>([
    ["bad_words", [["a"], "a"], [null, [], ""]],
    ["stop_words", [["a"], "a"], [null, [], ""]],
    ["beam_width", [2, "2"], [null, 1, "1"]],
    ["use_beam_search", [true, "true"], [null, false, "False"]],
    ["length_penalty", [0.5], [null, 1, "1.0"]],
    ["guided_json", ["{}"], [null]],
    ["allowed_token_ids", [[1]], [null]],
    ["include_stop_str_in_output", [true], [null, false]],
    ["skip_special_tokens", [false], [null, true]],
    ["prompt_logprobs", [1], [null]],
    ["logprobs", [1], [null]],
    ["truncate_prompt_tokens", [1], [null]],
    ["priority", [1], [null, 0]],
    ["lora_name", ["x"], [null]],
    ["image", ["x"], [null]],
    ["return_finish_reason", [true], [null, false]],
    ["return_logprobs", [true], [null, false]],
    ["return_cumulative_logprob", [true], [null, false]],
    ["return_token_ids", [true], [null, false]],
    ["return_num_input_tokens", [true], [null, false]],
    ["return_num_output_tokens", [true], [null, false]],
    ["no_such_thing", [0, "", false], [null]],
    ["triton_x", [1], [null]],
  ])("refuses %s by name, unless it asks for nothing", async (name, refused, taken) => {
    for (const value of refused) {
      for (const body of [{ [name]: value }, { sampling_parameters: JSON.stringify({ [name]: value }) }]) {
        const answer = await generate({ text_input: "a", ...body });
        const { error, code } = JSON.parse(answer.json) as { error: string; code: string };
        expect([answer.status, code, error]).toEqual([400, "invalid_argument", expect.stringContaining(name)]);
      }
    }
    expect(gateway.streams).toHaveLength(0);
    for (const value of taken) {
      for (const path of ["generate", "generate_stream"]) {
        expect([value, (await post(`talk/${path}`, { text_input: "a", [name]: value })).status]).toEqual([value, 200]);
      }
    }
  });

  it.each([
    [{}, 600_000, undefined],
    [{ timeout: 0, total_timeout: 0 }, 600_000, undefined],
    [{ timeout: 5_000_000 }, 5_000, undefined],
    [{ timeout: 5_000_000, total_timeout: 7_000_001 }, 5_000, 2_001],
    [{ timeout: 5_000_000, total_timeout: "3000000" }, 3_000, 0],
    [{ total_timeout: 3_600_000_000 }, 600_000, 3_000_000],
  ])("with %j waits %i ms for its first token, and %s ms more for its end", async (body, deadlineMs, restMs) => {
    expect((await generate({ text_input: "a", ...body })).status).toBe(200);
    const { request } = gateway.only();
    expect([request.deadlineMs, request.spec.restMs]).toEqual([deadlineMs, restMs]);
  });

  it("refuses what is no JSON, no UTF-8, or compressed", async () => {
    for (const body of ["", "{", "[]", Buffer.from('{"text_input":"\xff"}', "latin1")]) {
      const answer = await post("talk/generate", body);
      expect([answer.status, (JSON.parse(answer.json) as { code: string }).code]).toEqual([400, "invalid_json"]);
    }
    const message = "Unsupported content-encoding, only 'identity' is supported.";
    expectRefusal(await generate({ text_input: "a" }, { "content-encoding": "gzip" }), "invalid_argument", message);
    expect((await generate({ text_input: "a" }, { "content-encoding": "identity" })).status).toBe(200);
  });

  it("is refused as the fleet refuses it, and fails as its generation does", async () => {
    gateway.script = () => {
      throw new InferenceError("queue_full", "Exceeds maximum queue size");
    };
    expectRefusal(await generate({ text_input: "a" }), "queue_full", "Exceeds maximum queue size");
    expectRefusal(await stream({ text_input: "a" }), "queue_full", "Exceeds maximum queue size");
    gateway.script = (_, stream) =>
      void stream.append(record(0, delta("a")), failedRecord(1, "model_error", "it broke"));
    expectRefusal(await generate({ text_input: "a" }), "model_error", "it broke");
  });
});

describe("generate_stream on a generator", () => {
  it("is bare events of what each record added, and ends", async () => {
    const answer = await stream({ text_input: "Once", id: "7" });
    expect(answer.headers).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "baton-request-id": "r0.0.1.talk",
    });
    const event = (text: string): string =>
      `data: {"model_name":"talk","model_version":"1","id":"7","text_output":"${text}"}\n\n`;
    expect(answer.json).toBe(event("Hel") + event("lo, ") + event("you!"));
  });

  it("gives several choices as lists", async () => {
    gateway.script = (_, stream) =>
      void stream.append(
        record(0, delta(""), delta("", { index: 1 })),
        record(1, delta("a", { finish_reason: "stop" }), delta("b", { index: 1 })),
        finalRecord(2, 3, delta("c", { index: 1, finish_reason: "stop" })),
      );
    expect(texts(await stream({ text_input: "a", n: 2 }))).toEqual([
      ["a", "b"],
      ["", "c"],
    ]);
  });

  it.each([
    ["in its final record", [finalRecord(0, 0, delta("", { finish_reason: "stop" }))]],
    ["after others", [record(0, delta("")), finalRecord(1, 1, delta("", { finish_reason: "stop" }))]],
    ["of choices that ended before", [record(0, delta("", { finish_reason: "stop" })), finalRecord(1, 1)]],
  ])("is one event with empty text where the answer is empty: %s", async (_, records) => {
    gateway.script = (_, stream) => void stream.append(...records);
    const answer = await stream({ text_input: "a", id: "7" });
    expect(answer.status).toBe(200);
    expect(answer.json).toBe('data: {"model_name":"talk","model_version":"1","id":"7","text_output":""}\n\n');
  });

  it("gives the whole in one event where stream is false", async () => {
    expect(texts(await stream({ text_input: "a", stream: false, exclude_input_in_output: false }))).toEqual([
      "aHello, you!",
    ]);
    expectRefusal(
      await stream({ text_input: "a", exclude_input_in_output: false }),
      "invalid_argument",
      "When streaming, `exclude_input_in_output` = False is not allowed.",
    );
  });

  it("has the status of a first record that is a failure", async () => {
    gateway.script = (_, stream) => void stream.append(failedRecord(0, "expired", "Request timeout expired"));
    const answer = await stream({ text_input: "a" });
    expect([answer.status, answer.headers["content-type"]]).toEqual([503, "text/event-stream; charset=utf-8"]);
    expect(answer.json).toBe('data: {"error":"Request timeout expired","code":"expired"}\n\n');
  });

  it("says of a later failure in an event", async () => {
    gateway.script = (_, stream) =>
      void stream.append(record(0, delta("a")), failedRecord(1, "model_error", "it broke"));
    const answer = await stream({ text_input: "a" });
    expect(answer.status).toBe(200);
    expect(eventsIn(answer.json)[1]?.data).toBe('{"error":"it broke","code":"model_error"}');
  });
});

describe("generate on a tensor model", () => {
  const head = (model: string): string => `{"model_name":"${model}","model_version":"1"`;

  it.each([
    ["ints", { INPUT0: 5 }, [1], '"OUTPUT0":5'],
    ["ints", { INPUT0: [5, -1] }, [2], '"OUTPUT0":[5,-1]'],
    ["pairs", { INPUT0: [1, 2, 3, 4] }, [2, 2], '"OUTPUT0":[1,2,3,4]'],
    ["batched", { parameters: { INPUT0: [1, 2, 3, 4, 5, 6] } }, [2, 3], '"OUTPUT0":[1.0,2.0,3.0,4.0,5.0,6.0]'],
    ["strings", { INPUT0: "é" }, [1], '"OUTPUT0":"é"'],
    ["two", { INPUT0: true, INPUT1: [false] }, [1], '"OUTPUT0":true,"OUTPUT1":false'],
  ])("converts %s %j to shape %j", async (model, body, shape, outputs) => {
    expect((await post(`${model}/generate`, body)).json).toBe(`${head(model)},${outputs}}`);
    expect(gateway.admitted[0]?.inputs[0]?.shape).toEqual(shape);
    const answer = await post(`${model}/generate_stream`, body);
    expect(answer.json).toBe(`data: ${head(model)},${outputs}}\n\n`);
    expect(answer.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
  });

  it("passes on as a parameter what is no input, and reads nothing into it", async () => {
    const body = { id: "7", INPUT0: 1, timeout: 5, sequence_id: 42, parameters: { a: "x", b: true, c: 1.5 } };
    const { json } = await post("ints/generate", body, { "idempotency-key": "k" });
    expect(json).toBe('{"model_name":"ints","model_version":"1","id":"7","OUTPUT0":1}');
    expect(gateway.admitted[0]).toMatchObject({
      parameters: { id: "7", timeout: 5, sequence_id: 42, a: "x", b: true, c: 1.5 },
      sequence: undefined,
      deadlineMs: 60_000,
      idempotencyKey: "k",
    });
  });

  it.each([
    ["ints", { INPUT0: [[1]] }, "The schema can not convert input 'INPUT0' to tensor with proper shape"],
    ["ints", { INPUT0: null }, "The schema can not convert input 'INPUT0' to tensor with proper shape"],
    ["pairs", { INPUT0: [1, 2, 3] }, "The schema can not convert input 'INPUT0' to tensor with proper shape"],
    // prettier-ignore
    ["two", { INPUT0: [true, true], INPUT1: true }, "The schema can not convert input 'INPUT0' to tensor with proper shape"],
    ["ints", { INPUT0: "a" }, "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer"],
    // prettier-ignore
    ["ints", { INPUT0: [] }, "[request id: <id_unknown>] unexpected shape for input 'INPUT0' for model 'ints'. Expected [-1], got []. "],
    // prettier-ignore
    ["ints", { INPUT0: 1, a: [1] }, "parameter 'a' has invalid type. It should be either 'int', 'bool', 'string' or 'double'."],
    // prettier-ignore
    ["ints", { INPUT0: 1, triton_x: 1 }, "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified."],
    // prettier-ignore
    ["halves", { INPUT0: 1 }, "receiving FP16 data via JSON is not supported. Please use the binary data format for input INPUT0"],
    // prettier-ignore
    ["seq", { INPUT0: 1, sequence_id: 5 }, "inference request to model 'seq' must specify a non-zero or non-empty correlation ID"],
  ])("refuses %s %j", async (model, body, message) => {
    expectRefusal(await post(`${model}/generate`, body), "invalid_argument", message);
  });

  it("fails as its inference does, in a stream as an event", async () => {
    gateway.answer = () => Promise.resolve({ kind: "error", code: "model_error", message: "no" });
    expectRefusal(await post("ints/generate", { INPUT0: 1 }), "model_error", "no");
    const answer = await post("ints/generate_stream", { INPUT0: 1 });
    expect([answer.status, answer.json]).toEqual([500, 'data: {"error":"no","code":"model_error"}\n\n']);
  });

  it("is not found where there is no model", async () => {
    expectRefusal(await post("x/generate", {}), "unknown_model", "Request for unknown model: 'x' is not found");
    expect((await exchange(`${gateway.url}/v2/models/ints/generate`, "", {}, "GET")).status).toBe(405);
  });
});
