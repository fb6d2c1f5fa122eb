/** A decoupled model answers a request any number of times, over each path that can hold that. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { ensembles, makeEnsembles } from "../fixtures/ensembles.js";
import { iterating } from "../fixtures/iterating.js";
import { GrpcClient, parameters, type Message } from "../protocols/grpc/client.js";
import { makeModels } from "../support/fleet/made-model.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { input } from "./ask.js";

const repository = mkdtempSync(join(tmpdir(), "baton-decoupled-"));
afterAll(() => rmSync(repository, { recursive: true }));
const models = ["tells", "tells-later", "tells-slowly", "tells-in-order", "answers-once", "square_int32", "mock_llm"];
makeModels(repository, Object.fromEntries(Object.entries(iterating).filter(([name]) => models.includes(name))));
const withSteps = ["tells-twice", "tells-twice-slowly", "tells-some", "tells-of-totals", "tells-of-sums"] as const;
makeEnsembles(repository, Object.fromEntries(withSteps.map((name) => [name, ensembles[name] ?? ""])));
const serving = [...models, ...withSteps];
const running = useFleet({ repository, models: [], serving, gateways: 2, grpc: true });

const opened: GrpcClient[] = [];
const client = (gateway = 0): GrpcClient =>
  (opened[gateway] ??= new GrpcClient(running.fleet.gateways[gateway]?.grpc ?? ""));
afterAll(() => opened.forEach((one) => one.close()));

const totals = (count: number): number[] => Array.from({ length: count }, (_, i) => ((i + 1) * (i + 2)) / 2);

function counting(upTo: number, model = "tells", given: Parameters<typeof parameters>[0] = {}): Message {
  const contents = { fp32_contents: [upTo] };
  const name = model === "answers-once" ? "X" : "N";
  return {
    model_name: model,
    id: `to-${upTo}`,
    inputs: [{ name, datatype: "FP32", shape: [1, 1], contents }],
    parameters: parameters(given),
  };
}

interface InferAnswer {
  readonly parameters: Readonly<Record<string, { readonly bool_param?: boolean; readonly int64_param?: string }>>;
  readonly raw_output_contents: readonly Buffer[];
}

const answerIn = (message: Message): InferAnswer => message["infer_response"] as InferAnswer;
const valuesIn = (messages: readonly Message[]) =>
  messages.map((message) => answerIn(message).raw_output_contents[0]?.readFloatLE());
const finalsIn = (messages: readonly Message[]) =>
  messages.map((message) => answerIn(message).parameters["triton_final_response"]?.bool_param);

async function ask(message: Message): Promise<readonly Message[]> {
  const stream = client().stream();
  stream.send(message);
  return stream.finish();
}

async function events(path: string, body: object): Promise<Record<string, unknown>[]> {
  const response = await fetch(running.url + path, {
    method: "POST",
    headers: { accept: "text/event-stream" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return text
    .split("\n\n")
    .flatMap((event) => /^data: (.*)$/m.exec(event)?.[1] ?? [])
    .map((data) => JSON.parse(data) as Record<string, unknown>);
}

describe("a decoupled model", () => {
  it("sends an answer for each run over ModelStreamInfer, the last one with its final flag", async () => {
    const messages = await ask(counting(4));
    expect([valuesIn(messages), finalsIn(messages)]).toEqual([totals(4), [false, false, false, true]]);
  });

  it("answers many requests of one stream at the same time, each in its order", async () => {
    const stream = client().stream();
    const lengths = [9, 3, 7, 1, 5];
    for (const length of lengths) stream.send(counting(length));
    const messages = await stream.finish();
    for (const length of lengths) {
      const own = messages.filter((message) => (message["infer_response"] as Message)["id"] === `to-${length}`);
      expect(valuesIn(own)).toEqual(totals(length));
    }
  });

  it("keeps the order of requests where preserve_ordering asks for it", async () => {
    const stream = client().stream({ "baton-unordered": "true" });
    const lengths = [20, 2, 9, 1];
    for (const length of lengths) stream.send(counting(length, "tells-in-order"));
    const messages = await stream.finish();
    expect(valuesIn(messages)).toEqual(lengths.flatMap(totals));
  });

  it("gives the answers that respond_when names, and may give none but the final flag", async () => {
    expect(valuesIn(await ask(counting(5, "tells-later")))).toEqual(totals(5).slice(2));
    expect(await ask(counting(2, "tells-later"))).toEqual([]);
    const [empty, ...more] = await ask(counting(2, "tells-later", { triton_enable_empty_final_response: true }));
    expect([more, empty && answerIn(empty)]).toEqual([
      [],
      expect.objectContaining({
        raw_output_contents: [],
        parameters: expect.objectContaining({ triton_final_response: expect.anything() as unknown }) as unknown,
      }),
    ]);
  });

  it("may be no iterative model, and then answers once", async () => {
    const messages = await ask(counting(21, "answers-once"));
    expect([valuesIn(messages), finalsIn(messages)]).toEqual([[42], [true]]);
  });

  it("goes on at another gateway behind the last answer that the client has seen", async () => {
    const key = { idempotency_key: "told-once" };
    const first = client(0).stream();
    first.send(counting(30, "tells-slowly", key));
    const seen = [...(await first.received(4))].slice(0, 4);
    first.call.cancel();
    const second = client(1).stream();
    second.send(counting(30, "tells-slowly", { ...key, resume_after: 3 }));
    const rest = await second.finish();
    expect([...valuesIn(seen), ...valuesIn(rest)]).toEqual(totals(30));
    expect(answerIn(rest[0] ?? expect.fail("there are more")).parameters["response_index"]?.int64_param).toBe("4");
  });

  it("stops between two runs when its client leaves", async () => {
    const stream = client().stream();
    stream.send(counting(900, "tells-slowly"));
    await stream.received(2);
    stream.call.cancel();
    const open = async () => {
      const answer = await fetch(`${running.url}/v2/models/tells-slowly/requests`);
      return ((await answer.json()) as { requests: unknown[] }).requests.length;
    };
    await expect.poll(open).toBe(0);
  });

  it("sends events over HTTP to a client that accepts them", async () => {
    const body = { id: "e", inputs: [input("N", "FP32", [1, 1], [3])] };
    expect(await events("/v2/models/tells/infer", body)).toEqual(
      totals(3).map((total) => ({
        id: "e",
        model_name: "tells",
        model_version: "1",
        outputs: [{ name: "TOTAL", datatype: "FP32", shape: [1, 1], data: [total] }],
      })),
    );
    const flat = await events("/v2/models/tells/generate_stream", { N: 3 });
    expect(flat.map(({ TOTAL: total }) => total)).toEqual(totals(3));
  });

  it("is refused where there is one answer", async () => {
    const inputs = [input("N", "FP32", [1, 1], [3])];
    const infer = await fetch(`${running.url}/v2/models/tells/infer`, {
      method: "POST",
      body: JSON.stringify({ inputs }),
    });
    const text = "HTTP end point doesn't support models with decoupled transaction policy";
    expect([infer.status, await infer.json()]).toEqual([501, expect.objectContaining({ error: text })]);
    const unary = await client().call("ModelInfer", counting(3));
    expect([unary.status, unary.details]).toEqual([
      12,
      "ModelInfer RPC doesn't support models with decoupled transaction policy",
    ]);
    const generate = (upTo: number) =>
      fetch(`${running.url}/v2/models/tells/generate`, { method: "POST", body: JSON.stringify({ N: upTo }) });
    expect(await (await generate(1)).json()).toMatchObject({ model_name: "tells", TOTAL: 1 });
    expect(await (await generate(3)).json()).toMatchObject({ code: "invalid_argument" });
  });

  it("runs in the background, and its answers are read later", async () => {
    const accepted = await fetch(`${running.url}/v2/models/tells/infer`, {
      method: "POST",
      headers: { prefer: "respond-async" },
      body: JSON.stringify({ inputs: [input("N", "FP32", [1, 1], [3])] }),
    });
    const { id } = (await accepted.json()) as { readonly id: string };
    const told = await fetch(`${running.url}/v2/requests/${id}/events`, { headers: { accept: "text/event-stream" } });
    const records = [...(await told.text()).matchAll(/^data: (.*)$/gm)].map(
      ([, data]) => JSON.parse(data ?? "") as { readonly outputs: readonly { readonly raw: string }[] },
    );
    const values = records.map(({ outputs }) => Buffer.from(outputs[0]?.raw ?? "", "base64").readFloatLE());
    expect(values).toEqual(totals(3));
  });
});

describe("an ensemble with a decoupled step", () => {
  const twice = (count: number) => totals(count).map((total) => 2 * total);
  const openRequestsOf = async (model: string) => {
    const answer = await fetch(`${running.url}/v2/models/${model}/requests`);
    return ((await answer.json()) as { requests: unknown[] }).requests.length;
  };

  it("passes each answer on through the steps behind, in order", async () => {
    const stream = client().stream();
    const lengths = [9, 3, 7, 1, 5];
    for (const length of lengths) stream.send(counting(length, "tells-twice"));
    const messages = await stream.finish();
    for (const length of lengths) {
      const own = messages.filter((message) => (message["infer_response"] as Message)["id"] === `to-${length}`);
      expect(valuesIn(own)).toEqual(twice(length));
    }
  });

  it("ends with a final flag alone if the client asks for it", async () => {
    const messages = await ask(counting(2, "tells-twice", { triton_enable_empty_final_response: true }));
    expect([valuesIn(messages), finalsIn(messages)]).toEqual([
      [...twice(2), undefined],
      [false, false, true],
    ]);
  });

  it("goes on at another gateway behind the last answer that the client has seen", async () => {
    const key = { idempotency_key: "told-twice" };
    const first = client(0).stream();
    first.send(counting(20, "tells-twice-slowly", key));
    const seen = [...(await first.received(4))].slice(0, 4);
    first.call.cancel();
    const second = client(1).stream();
    second.send(counting(20, "tells-twice-slowly", { ...key, resume_after: 3 }));
    expect([...valuesIn(seen), ...valuesIn(await second.finish())]).toEqual(twice(20));
  });

  it("stops all its steps when its client leaves", async () => {
    const stream = client().stream();
    stream.send(counting(900, "tells-twice-slowly"));
    await stream.received(2);
    stream.call.cancel();
    await expect.poll(() => openRequestsOf("tells-twice-slowly")).toBe(0);
    // The step's model runs no more for it, so it answers others as fast as ever.
    expect(valuesIn(await ask(counting(3, "tells-slowly")))).toEqual(totals(3));
  });

  it("begins an iterative step behind it anew for each answer", async () => {
    const lengths = [3, 1, 2];
    const stream = client().stream();
    for (const length of lengths) stream.send(counting(length, "tells-of-totals"));
    const messages = await stream.finish();
    for (const length of lengths) {
      const own = messages.filter((message) => (message["infer_response"] as Message)["id"] === `to-${length}`);
      expect(valuesIn(own)).toEqual(totals(length).flatMap(totals));
    }
  });

  it("does the same in the steps of a sequence that lasts", async () => {
    const step = async (value: number, given: Parameters<typeof parameters>[0]) =>
      (await ask(counting(value, "tells-of-sums", { sequence_id: 5, ...given }))).map((message) =>
        answerIn(message).raw_output_contents.map((output) => output.readFloatLE()),
      );
    expect(await step(2, { sequence_start: true })).toEqual([
      [2, 1],
      [2, 6],
    ]);
    // The first iterative step, before which no step is decoupled, counts on from 2.
    expect(await step(1, { sequence_end: true })).toEqual([[3, 21]]);
  });

  it("ends with the error of a step behind, after the answers before it", async () => {
    const messages = await ask(counting(4, "tells-some"));
    expect(messages.map((message) => message["error_message"])).toEqual([
      "",
      expect.stringMatching(/^in ensemble 'tells-some', onnx runtime error: /),
    ]);
    expect(valuesIn(messages.slice(0, 1))).toEqual([20]);
    await expect.poll(() => openRequestsOf("tells-some")).toBe(0);
  });

  it("sends events over HTTP", async () => {
    const flat = await events("/v2/models/tells-twice/generate_stream", { N: 3 });
    expect(flat.map(({ OUT: out }) => out)).toEqual(twice(3));
  });
});

/** The cases of Triton's `qa/L0_decoupled`, whose models need a backend of their own. */
describe("square_int32, which gives the answer n for n times", () => {
  const squaring = (n: number, id: string, given: Parameters<typeof parameters>[0] = {}): Message => ({
    model_name: "square_int32",
    id,
    inputs: [{ name: "IN", datatype: "INT32", shape: [1, 1], contents: { int_contents: [n] } }],
    parameters: parameters(given),
  });
  const squaresIn = (messages: readonly Message[]) =>
    messages.map((message) => {
      expect(message["error_message"]).toBe("");
      return answerIn(message).raw_output_contents[0]?.readInt32LE();
    });
  const square = (n: number): number[] => Array.from({ length: n }, () => n);
  const idOf = (message: Message) => (message["infer_response"] as Message)["id"];
  const finalEach = { triton_enable_empty_final_response: true };

  /** Asks for all of `sizes` on one stream, and expects the answers of each under its id. */
  async function askTogether(sizes: readonly number[]): Promise<readonly Message[]> {
    const stream = client().stream();
    sizes.forEach((n, i) => stream.send(squaring(n, String(i))));
    const messages = await stream.finish();
    for (const [i, n] of sizes.entries()) {
      const own = messages.filter((message) => idOf(message) === String(i));
      expect([squaresIn(own), finalsIn(own)]).toEqual([square(n), square(n).map((_, at) => at === n - 1)]);
    }
    return messages;
  }

  it.each([0, 1, 5])("answers one request and five requests for %i", async (n) => {
    expect(await askTogether([n])).toHaveLength(n);
    expect(await askTogether([n, n, n, n, n])).toHaveLength(5 * n);
  });

  it("answers many requests for different counts at once", async () => {
    const sizes = Array.from({ length: 40 }, (_, i) => (i * 7) % 23);
    await askTogether(sizes);
  });

  it("lets the answers of a short request overtake those of a long one", async () => {
    const stream = client().stream();
    stream.send(squaring(999, "long"));
    await stream.received(1);
    stream.send(squaring(2, "short"));
    const answers = (id: string) => stream.messages.filter((message) => idOf(message) === id);
    await expect.poll(() => answers("short").length, { interval: 1 }).toBe(2);
    expect(finalsIn(answers("long"))).not.toContain(true);
    stream.call.cancel();
  });

  it("ends each request by the final flag, by a message of its own only without an answer", async () => {
    const stream = client().stream();
    for (const n of [3, 0, 1]) stream.send(squaring(n, String(n), finalEach));
    const messages = await stream.finish();
    const ended = (id: string) => {
      const own = messages.filter((message) => idOf(message) === id);
      return [squaresIn(own), finalsIn(own)];
    };
    expect([ended("3"), ended("0"), ended("1")]).toEqual([
      [square(3), [false, false, true]],
      [[undefined], [true]],
      [[1], [true]],
    ]);
  });

  it("refuses a wrong shape in the stream, which goes on", async () => {
    const stream = client().stream();
    const contents = { int_contents: [1, 2] };
    const wide = { model_name: "square_int32", inputs: [{ name: "IN", datatype: "INT32", shape: [1, 2], contents }] };
    stream.send(wide);
    const [refused] = await stream.received(1);
    expect(refused?.["error_message"]).toContain(
      "unexpected shape for input 'IN' for model 'square_int32'. Expected [-1,1], got [1,2]",
    );
    stream.send(squaring(2, "2"));
    expect(squaresIn((await stream.finish()).slice(1))).toEqual([2, 2]);
  });
});

/** The cases of Triton's generate endpoint, whose model needs a backend of its own. */
describe("mock_llm, which has an input that requests may leave out", () => {
  const prompt = { PROMPT: "hello world", STREAM: true };
  const textsOf = async (body: object) =>
    (await events("/v2/models/mock_llm/generate_stream", body)).map(({ TEXT }) => TEXT);

  async function generate(body: object): Promise<[number, Record<string, unknown>]> {
    const call = { method: "POST", body: JSON.stringify(body) };
    const response = await fetch(`${running.url}/v2/models/mock_llm/generate`, call);
    return [response.status, (await response.json()) as Record<string, unknown>];
  }

  it("answers as often as the request says, once by default", async () => {
    expect(await textsOf(prompt)).toEqual([prompt.PROMPT]);
    expect(await textsOf({ ...prompt, REPETITION: 3 })).toEqual([prompt.PROMPT, prompt.PROMPT, prompt.PROMPT]);
    expect(await textsOf({ ...prompt, PROMPT: [prompt.PROMPT], REPETITION: 0 })).toEqual([]);
  });

  it("has one answer for a client that wants one", async () => {
    expect(await generate({ ...prompt, STREAM: false, id: "42" })).toEqual([
      200,
      expect.objectContaining({ id: "42", TEXT: prompt.PROMPT }),
    ]);
    const wants = "generate expects model to produce exactly 1 response";
    for (const count of [0, 2]) {
      const [status, { error }] = await generate({ ...prompt, REPETITION: count });
      // Triton has sent the head of its answer by then.
      expect([status, String(error).startsWith(wants)]).toEqual([200, true]);
    }
    const [status, { error }] = await generate({ PROMPT: "hello" });
    expect([status, error]).toEqual([
      400,
      expect.stringContaining("expected number of inputs between 2 and 3 but got 1"),
    ]);
  });
});
