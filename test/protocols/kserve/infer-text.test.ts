/** `infer` on a generator: text is a tensor of one element. */
import { describe, expect, it } from "vitest";
import { generators, useGateway } from "../../support/gateway/test-gateway.js";
import { type Answer, exchange, expectRefusal, postInfer } from "../../support/gateway/http.js";
import { delta, failedRecord, finalRecord } from "../../fixtures/token-records.js";
import { generatorModel } from "../../fixtures/served-models.js";
import { bytesElement, textInput } from "../../fixtures/requests.js";
import { eventsIn } from "../../support/streams/event-source.js";

const gateway = useGateway({
  models: [
    ...generators,
    {
      ...generatorModel("named", { namesText: true }),
      maxBatchSize: 8,
      inputs: [{ name: "PROMPT", datatype: "BYTES", dims: [-1] }],
      outputs: [{ name: "ANSWER", datatype: "BYTES", dims: [-1] }],
    },
  ],
});

const input = textInput("Once");
const infer = (members: object = {}, ...blocks: Buffer[]): Promise<Answer> =>
  postInfer(gateway, "talk", { inputs: [input], ...members }, ...blocks);

/** Asks as a client that takes events. */
const inferEvents = (members: object): Promise<Answer> =>
  exchange(`${gateway.url}/v2/models/talk/infer`, { inputs: [input], ...members }, { accept: "text/event-stream" });

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
    expectRefusal(await inferEvents({ parameters: { stream: true } }), "poison_request", "set aside");
  });
});

it("is a stream of responses with the parameter stream where the client takes events", async () => {
  const answer = await inferEvents({ id: "7", parameters: { stream: true, binary_data_output: true } });
  expect(answer.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
  expect(eventsIn(answer.json).map(({ id, data }) => [id, data])).toEqual(
    ["Hel", "lo, ", "you!"].map((text) => [undefined, `{"id":"7",${head}[1],"data":["${text}"]}]}`]),
  );
});

it("is a stream of one empty response where the answer is empty", async () => {
  gateway.script = (_, stream) => void stream.append(finalRecord(0, 1, delta("", { finish_reason: "stop" })));
  const answer = await inferEvents({ id: "7", parameters: { stream: true } });
  expect(eventsIn(answer.json).map(({ data }) => data)).toEqual([`{"id":"7",${head}[1],"data":[""]}]}`]);
});

it("is one response with the parameter stream where the client does not name events", async () => {
  const url = `${gateway.url}/v2/models/talk/infer`;
  const members = { inputs: [input], parameters: { stream: true } };
  for (const accept of [undefined, "*/*", "application/json", "text/event-stream;q=0, */*", "text/*"]) {
    const answer = await exchange(url, members, accept === undefined ? {} : { accept });
    expect([answer.status, answer.json]).toEqual([200, `{${head}[1],"data":["Hello, you!"]}]}`]);
  }
  for (const accept of ["application/json, text/event-stream", "Text/Event-Stream; q=0.5"]) {
    const answer = await exchange(url, members, { accept });
    expect(answer.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
  }
});

describe("a text under another name", () => {
  const named = (name: string, shape: number[], members: object = {}, model = "talk"): Promise<Answer> =>
    postInfer(gateway, model, { inputs: [{ ...input, name, shape }], ...members });
  const outputsOf = ({ json }: Answer): unknown => (JSON.parse(json) as { outputs: unknown }).outputs;
  const output = (name: string, shape: number[], data = ["Hello, you!"]) => [{ name, datatype: "BYTES", shape, data }];

  it("is answered under that name, in the shape that it has", async () => {
    const answer = await named("TEXT", [1, 1], { parameters: { max_tokens: 8, stream: true } });
    expect(outputsOf(answer)).toEqual(output("TEXT", [1, 1]));
    expect(gateway.only().request.spec).toMatchObject({ prompt: { text: "Once" }, sampling: { maxTokens: 8 } });
    expect(outputsOf(await named("TEXT", [1], { outputs: [{ name: "TEXT" }] }))).toEqual(output("TEXT", [1]));
    expect(outputsOf(await named("text_input", [1, 1]))).toEqual(output("text_output", [1, 1]));
  });

  it("has its choices in the last dimension", async () => {
    gateway.script = (_, stream) =>
      void stream.append(
        finalRecord(0, 2, delta("a", { finish_reason: "stop" }), delta("b", { index: 1, finish_reason: "stop" })),
      );
    const answer = await named("TEXT", [1, 1], { parameters: { n: 2 } });
    expect(outputsOf(answer)).toEqual(output("TEXT", [1, 2], ["a", "b"]));
  });

  it("has the names that the model's configuration gives, where it gives them", async () => {
    expect(outputsOf(await named("PROMPT", [1, 1], {}, "named"))).toEqual(output("ANSWER", [1, 1]));
    const metadata = await exchange(`${gateway.url}/v2/models/named`, "", {}, "GET");
    expect(JSON.parse(metadata.json)).toMatchObject({ inputs: [{ name: "PROMPT", shape: [-1, -1] }] });
    const flat = await exchange(`${gateway.url}/v2/models/named/generate`, { PROMPT: "Once" });
    expect(JSON.parse(flat.json)).toEqual({ model_name: "named", model_version: "1", ANSWER: "Hello, you!" });
    const refused = "unexpected inference input 'TEXT' for model 'named'";
    expectRefusal(await named("TEXT", [1, 1], {}, "named"), "invalid_argument", refused);
  });

  it("is refused by that name", async () => {
    const post = (members: object) => postInfer(gateway, "talk", members);
    const text = { ...input, name: "TEXT", shape: [1, 1] };
    const prefix = "[request id: <id_unknown>] ";
    const cases: [members: object, message: string][] = [
      [{ inputs: [{ ...text, data: [""] }] }, "TEXT must not be empty"],
      [
        { inputs: [{ ...text, shape: [2, 1], data: ["a", "b"] }] },
        `${prefix}unexpected shape for input 'TEXT' for model 'talk'. Expected [1], got [2,1]. `,
      ],
      [
        { inputs: [{ ...text, shape: [1, 1, 1] }] },
        `${prefix}unexpected shape for input 'TEXT' for model 'talk'. Expected [1], got [1,1,1]. `,
      ],
      [
        { inputs: [text], outputs: [{ name: "text_output" }] },
        "unexpected inference output 'text_output' for model 'talk'",
      ],
      [
        { inputs: [{ name: "TEXT", datatype: "INT32", shape: [1], data: [1] }] },
        "unexpected inference input 'TEXT' for model 'talk'",
      ],
      [
        { inputs: [text, { ...text, name: "MORE" }] },
        `${prefix}expected 1 inputs but got 2 inputs for model 'talk'. Got input(s) ['TEXT','MORE'], ` +
          "but missing required input(s) ['text_input']. Please provide all required input(s).",
      ],
    ];
    for (const [members, message] of cases) expectRefusal(await post(members), "invalid_argument", message);
    expect(gateway.streams).toHaveLength(0);
  });
});

it("refuses the prompt in a stream of events alone", async () => {
  const parameters = { stream: true, exclude_input_in_output: false };
  const message = "When streaming, `exclude_input_in_output` = False is not allowed.";
  expectRefusal(await inferEvents({ parameters }), "invalid_argument", message);
  expect(gateway.streams).toHaveLength(0);
  expect((await infer({ parameters })).json).toBe(`{${head}[1],"data":["OnceHello, you!"]}]}`);
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
    ["an unknown parameter", { parameters: { no_such_thing: 1 } }, "Unrecognized request argument supplied: no_such_thing"],
    ["a parameter that is not obeyed", { parameters: { use_beam_search: true } }, "use_beam_search is not supported: leave it out or give false"],
    ["an unknown flag", { parameters: { sequence_id: 5, sequence_start: 1 } }, "sequence_start must be true or false, got 1"],
  ])("is %s", async (_, members, message) => {
    expectRefusal(await infer(members), "invalid_argument", message);
    expect(gateway.streams).toHaveLength(0);
  });
});
