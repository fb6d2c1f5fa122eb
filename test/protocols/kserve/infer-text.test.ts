/** `infer` on a generator: text is a tensor of one element. */
import { describe, expect, it } from "vitest";
import { generators, useGateway } from "../../support/gateway/test-gateway.js";
import { type Answer, exchange, expectRefusal, postInfer } from "../../support/gateway/http.js";
import { delta, failedRecord, finalRecord } from "../../fixtures/token-records.js";
import { bytesElement, textInput } from "../../fixtures/requests.js";
import { eventsIn } from "../../support/streams/event-source.js";

const gateway = useGateway({ models: generators });

const input = textInput("Once");
const infer = (members: object = {}, ...blocks: Buffer[]): Promise<Answer> =>
  postInfer(gateway, "talk", { inputs: [input], ...members }, ...blocks);

const head = '"model_name":"talk","model_version":"1","outputs":[{"name":"text_output","datatype":"BYTES","shape":';

it("is described like any model", async () => {
  const { json } = await exchange(`${gateway.url}/v2/models/talk`, "", {}, "GET");
  expect(JSON.parse(json)).toMatchObject({
    inputs: [{ name: "text_input", datatype: "BYTES", shape: [1] }],
    outputs: [{ name: "text_output", datatype: "BYTES", shape: [1] }],
  });
});

describe("a whole answer", () => {
  it("is one tensor", async () => {
    const answer = await infer({ id: "7", parameters: { temperature: 0, stop: ["a"], logit_bias: { 5: 1 } } });
    expect(answer.json).toBe(`{"id":"7",${head}[1],"data":["Hello, you!"]}]}`);
    expect(answer.headers["baton-request-id"]).toBe("r0.0.1.talk");
    expect(gateway.only().request).toMatchObject({
      sequence: undefined,
      spec: {
        prompt: { kind: "text", text: "Once" },
        sampling: { temperature: 0, stop: ["a"], logitBias: [[5, 1]], maxTokens: null },
      },
    });
  });

  it("comes and goes as bytes", async () => {
    const text = bytesElement("Öncè");
    const binary = { ...input, data: undefined, parameters: { binary_data_size: text.length } };
    const members = { inputs: [binary], parameters: { binary_data_output: true } };
    const answer = await infer(members, text);
    expect(answer.blocks).toEqual(bytesElement("Hello, you!"));
    expect(gateway.only().request.spec.prompt).toEqual({ kind: "text", text: "Öncè" });
    const raw = await exchange(`${gateway.url}/v2/models/talk/infer`, "Once", {
      "inference-header-content-length": "0",
    });
    expect(raw.blocks).toEqual(bytesElement("Hello, you!"));
  });

  it("has an element for each choice", async () => {
    gateway.script = (_, stream) =>
      void stream.append(
        finalRecord(0, 2, delta("a", { finish_reason: "stop" }), delta("b", { index: 1, finish_reason: "stop" })),
      );
    expect((await infer({ parameters: { n: 2 } })).json).toBe(`{${head}[2],"data":["a","b"]}]}`);
  });

  it("is a turn of a conversation with the sequence's parameters", async () => {
    await infer({ parameters: { sequence_id: 42, sequence_start: true, sequence_end: false, timeout: 1_000_000 } });
    expect(gateway.only().request).toMatchObject({
      sequence: { id: { kind: "uint64", value: 42n }, start: true, end: false },
      deadlineMs: 1000,
    });
  });

  it("fails as its generation does", async () => {
    gateway.script = (_, stream) => void stream.append(failedRecord(0, "poison_request", "set aside"));
    expectRefusal(await infer(), "poison_request", "set aside");
    expectRefusal(await infer({ parameters: { stream: true } }), "poison_request", "set aside");
  });
});

it("is a stream of responses with the parameter stream", async () => {
  const answer = await infer({ id: "7", parameters: { stream: true, binary_data_output: true } });
  expect(answer.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
  expect(eventsIn(answer.json).map(({ id, data }) => [id, data])).toEqual(
    ["Hel", "lo, ", "you!"].map((text) => [undefined, `{"id":"7",${head}[1],"data":["${text}"]}]}`]),
  );
});

it("is a stream of one empty response where the answer is empty", async () => {
  gateway.script = (_, stream) => void stream.append(finalRecord(0, 1, delta("", { finish_reason: "stop" })));
  const answer = await infer({ id: "7", parameters: { stream: true } });
  expect(eventsIn(answer.json).map(({ data }) => data)).toEqual([`{"id":"7",${head}[1],"data":[""]}]}`]);
});

it("is answered with an id at once where the client prefers to come back", async () => {
  gateway.script = () => undefined;
  const answer = await exchange(
    `${gateway.url}/v2/models/talk/infer`,
    { inputs: [input] },
    { prefer: "respond-async" },
  );
  expect([answer.status, answer.headers["location"]]).toEqual([202, "/v2/requests/r0.0.1.talk"]);
  expect(gateway.only().request.background).toBe(true);
});

describe("what is refused", () => {
  it("is text that is no UTF-8", async () => {
    const bytes = bytesElement(Buffer.from([0x61, 0xff]));
    const binary = { ...input, data: undefined, parameters: { binary_data_size: bytes.length } };
    const message = "inference input 'text_input' for model 'talk' must be UTF-8 text";
    expectRefusal(await infer({ inputs: [binary] }, bytes), "invalid_argument", message);
  });

  // prettier-ignore
  it.each([
    ["empty text", { inputs: [{ ...input, data: [""] }] }, "text_input must not be empty"],
    ["two texts", { inputs: [{ ...input, shape: [2], data: ["a", "b"] }] }, "[request id: <id_unknown>] unexpected shape for input 'text_input' for model 'talk'. Expected [1], got [2]. "],
    ["another output", { outputs: [{ name: "x" }] }, "unexpected inference output 'x' for model 'talk'"],
    ["a limit passed", { parameters: { max_tokens: 1e9 } }, "max_tokens must be a whole number from 1 to 4096, got 1000000000"],
    ["the prompt in a stream", { parameters: { stream: true, exclude_input_in_output: false } }, "When streaming, `exclude_input_in_output` = False is not allowed."],
    ["an unknown parameter", { parameters: { no_such_thing: 1 } }, "Unrecognized request argument supplied: no_such_thing"],
    ["a parameter that is not obeyed", { parameters: { use_beam_search: true } }, "use_beam_search is not supported: leave it out or give false"],
    ["an unknown flag", { parameters: { sequence_id: 5, sequence_start: 1 } }, "sequence_start must be true or false, got 1"],
  ])("is %s", async (_, members, message) => {
    expectRefusal(await infer(members), "invalid_argument", message);
    expect(gateway.streams).toHaveLength(0);
  });
});
