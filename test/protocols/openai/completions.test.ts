/** `/v1/completions` on the wire. */
import { describe, expect, it } from "vitest";
import type { ChoiceDelta, TokenChance } from "#shared/contract/generation.js";
import { generators, useGateway } from "../../support/gateway/test-gateway.js";
import { type Answer, exchange } from "../../support/gateway/http.js";
import { delta, failedRecord, finalRecord, record } from "../../fixtures/token-records.js";
import { eventsIn, jsonIn } from "../../support/streams/event-source.js";
import { completionBody } from "../../fixtures/requests.js";

const gateway = useGateway({ models: generators });

const post = (body: object, headers: Record<string, string> = {}): Promise<Answer> =>
  exchange(`${gateway.url}/v1/completions`, { ...completionBody, ...body }, headers);

const chance = (token: string, logprob: number, bytes = [...Buffer.from(token)]): TokenChance => ({
  id: 1,
  token,
  bytes,
  logprob,
});

describe("a whole answer", () => {
  it("has OpenAI's members in full", async () => {
    const answer = await post({ seed: 5, user: "u" });
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({ "content-type": "application/json", "baton-request-id": "r0.0.1.talk" });
    const { created, ...rest } = JSON.parse(answer.json) as Record<string, unknown>;
    expect(created).toEqual(expect.any(Number));
    expect(rest).toEqual({
      id: "cmpl-r0.0.1.talk",
      object: "text_completion",
      model: "talk",
      system_fingerprint: "fp_0123456789ab",
      choices: [{ index: 0, text: "Hello, you!", logprobs: null, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
    });
    expect(gateway.only().request).toMatchObject({
      tenant: "default",
      sequence: undefined,
      background: false,
      deadlineMs: 600_000,
      spec: { sampling: { seed: 5, maxTokens: 16, choices: 1 } },
    });
  });

  it("numbers the choices of several prompts on", async () => {
    gateway.script = ({ spec: { prompt } }, stream) => {
      const words = prompt.kind === "text" ? prompt.text : "tokens";
      stream.append(
        finalRecord(
          0,
          2,
          delta(`${words} 0`, { finish_reason: "stop" }),
          delta(`${words} 1`, { index: 1, finish_reason: "length" }),
        ),
      );
    };
    const { json } = await post({ prompt: ["a", [1, 2], "b"], n: 2 }, { "idempotency-key": "k" });
    const { choices, usage } = JSON.parse(json) as { choices: object[]; usage: object };
    expect(choices.map((choice) => Object.values(choice).slice(0, 2))).toEqual([
      [0, "a 0"],
      [1, "a 1"],
      [2, "tokens 0"],
      [3, "tokens 1"],
      [4, "b 0"],
      [5, "b 1"],
    ]);
    expect(usage).toEqual({ prompt_tokens: 9, completion_tokens: 6, total_tokens: 15 });
    expect(gateway.streams.map(({ request }) => request.idempotencyKey)).toEqual(["k\n0", "k\n1", "k\n2"]);
    expect(new Set(gateway.streams.map(({ request }) => request.spec.sampling.seed)).size).toBe(3);
  });

  it.each([
    ["a string", "a", { kind: "text", text: "a" }],
    ["a list of one string", ["a"], { kind: "text", text: "a" }],
    ["tokens", [1, 2], { kind: "tokens", tokens: [1, 2] }],
    ["a list of one list of tokens", [[1, 2]], { kind: "tokens", tokens: [1, 2] }],
  ])("takes %s for a prompt", async (_, prompt, spec) => {
    await post({ prompt });
    expect(gateway.only().request.spec.prompt).toEqual(spec);
  });

  it("gives the prompt back where it is asked to", async () => {
    expect(JSON.parse((await post({ echo: true })).json)).toMatchObject({ choices: [{ text: "OnceHello, you!" }] });
  });

  it("is a turn of a conversation under a sequence_id", async () => {
    await post({ sequence_id: 2 ** 53, sequence_start: true });
    await exchange(
      `${gateway.url}/v1/completions`,
      '{"model":"talk","prompt":"x","sequence_id":"s","sequence_end":true}',
    );
    expect(gateway.streams.map(({ request }) => request.sequence)).toEqual([
      { id: { kind: "uint64", value: 2n ** 53n }, start: true, end: false },
      { id: { kind: "string", value: "s" }, start: false, end: true },
    ]);
  });

  it("is the refusal of the first prompt that fails, and nobody works on for the others", async () => {
    gateway.script = ({ spec: { prompt } }, stream) => {
      if (prompt.kind === "text" && prompt.text === "b") stream.append(failedRecord(0, "model_error", "no"));
    };
    const answer = await post({ prompt: ["a", "b"] });
    expect([answer.status, JSON.parse(answer.json)]).toMatchObject([500, { error: { code: "model_error" } }]);
    expect(gateway.streams.map(({ cancelled }) => cancelled)).toEqual([true, true]);
  });
});

describe("log probabilities", () => {
  /** A smile in two tokens, and a token outside the likeliest. */
  const smile = [chance("\u{fffd}", -0.5, [0xf0, 0x9f]), chance("\u{fffd}", -0.25, [0x98, 0x80])] as const;
  const script = (): void => {
    const told = (...tokens: TokenChance[]): Pick<ChoiceDelta, "logprobs"> => ({
      logprobs: tokens.map((token) => ({ ...token, top: [chance(" the", -0.125), chance(" a", -2)] })),
    });
    gateway.script = (_, stream) =>
      void stream.append(
        record(0, delta("", told(smile[0]))),
        record(1, delta("😀", told(smile[1]))),
        finalRecord(2, 3, delta(" a", { ...told(chance(" a", -2)), finish_reason: "length" })),
      );
  };
  const whole = {
    tokens: ["\u{fffd}", "\u{fffd}", " a"],
    token_logprobs: [-0.5, -0.25, -2],
    top_logprobs: [
      { " the": -0.125, " a": -2, "\u{fffd}": -0.5 },
      { " the": -0.125, " a": -2, "\u{fffd}": -0.25 },
      { " the": -0.125, " a": -2 },
    ],
    text_offset: [0, 1, 1],
  };

  it("are four lists, offsets counted in characters", async () => {
    script();
    expect(JSON.parse((await post({ logprobs: 2 })).json)).toMatchObject({ choices: [{ logprobs: whole }] });
    expect(gateway.only().request.spec.sampling.logprobs).toBe(2);
  });

  it("come with each chunk, of tokens whose text is not yet told too", async () => {
    script();
    const chunks = jsonIn<{ choices: { text: string; logprobs: typeof whole }[] }>(
      eventsIn((await post({ logprobs: 2, stream: true })).json),
    ).flatMap(({ choices }) => choices);
    expect(chunks.map(({ text }) => text)).toEqual(["", "😀", " a"]);
    expect(chunks.flatMap(({ logprobs }) => logprobs.text_offset)).toEqual(whole.text_offset);
    expect(chunks.flatMap(({ logprobs }) => logprobs.tokens)).toEqual(whole.tokens);
  });
});

describe("a stream", () => {
  it("is chunks with the index of the record that each ends, and DONE", async () => {
    const answer = await post({ stream: true });
    expect(answer.headers).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-cache",
      "baton-request-id": "r0.0.1.talk",
    });
    const events = eventsIn(answer.json);
    expect(events.map(({ id }) => id)).toEqual(["1", "2", "3", undefined]);
    expect(events.at(-1)?.data).toBe("[DONE]");
    const [first, ...others] = jsonIn(events);
    expect(first).toEqual({
      id: "cmpl-r0.0.1.talk",
      object: "text_completion",
      created: first?.["created"],
      model: "talk",
      system_fingerprint: "fp_0123456789ab",
      choices: [{ index: 0, text: "Hel", logprobs: null, finish_reason: null }],
    });
    expect(others.map((chunk) => chunk["choices"])).toEqual([
      [{ index: 0, text: "lo, ", logprobs: null, finish_reason: null }],
      [{ index: 0, text: "you!", logprobs: null, finish_reason: "stop" }],
    ]);
    expect(new Set(jsonIn(events).map((chunk) => chunk["created"])).size).toBe(1);
  });

  it("tells what was used in a chunk of its own, which ends the last record", async () => {
    const events = eventsIn((await post({ stream: true, stream_options: { include_usage: true } })).json);
    expect(events.map(({ id }) => id)).toEqual(["1", "2", undefined, "3", undefined]);
    const chunks = jsonIn(events);
    expect(chunks.map(({ usage }) => usage)).toEqual([
      null,
      null,
      null,
      { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
    ]);
    expect(chunks.at(-1)?.["choices"]).toEqual([]);
  });

  it("begins every choice with the prompt where it is asked to", async () => {
    gateway.script = (_, stream) =>
      void stream.append(
        record(0, delta(""), delta("b", { index: 1 })),
        finalRecord(1, 4, delta("a", { finish_reason: "stop" }), delta("c", { index: 1, finish_reason: "stop" })),
      );
    const chunks = jsonIn<{ choices: { index: number; text: string }[] }>(
      eventsIn((await post({ stream: true, echo: true, n: 2 })).json),
    );
    expect(chunks.flatMap(({ choices }) => choices).map(({ index, text }) => [index, text])).toEqual([
      [0, "Once"],
      [1, "Onceb"],
      [0, "a"],
      [1, "c"],
    ]);
  });

  it("of several prompts has all their choices, and no index to go on from", async () => {
    gateway.script = ({ spec: { prompt } }, stream) => {
      const words = prompt.kind === "text" ? prompt.text : "";
      stream.append(record(0, delta(words)), finalRecord(1, 2, delta("!", { finish_reason: "stop" })));
    };
    const body = { prompt: ["a", "b"], stream: true, stream_options: { include_usage: true } };
    const answer = await post(body);
    expect(answer.headers["baton-request-id"]).toBe("r0.0.1.talk, r1.0.1.talk");
    const events = eventsIn(answer.json);
    expect(events.some(({ id }) => id !== undefined)).toBe(false);
    const chunks = jsonIn<{ choices: { index: number; text: string }[]; usage: object | null }>(events);
    const textOf = (wanted: number): string =>
      chunks
        .flatMap(({ choices }) => choices)
        .filter(({ index }) => index === wanted)
        .map(({ text }) => text)
        .join("");
    expect([textOf(0), textOf(1)]).toEqual(["a!", "b!"]);
    expect(chunks.map(({ usage }) => usage).filter((usage) => usage !== null)).toEqual([
      { prompt_tokens: 6, completion_tokens: 4, total_tokens: 10 },
    ]);
  });

  it("that fails before its first record is a refusal with its own status", async () => {
    gateway.script = (_, stream) => void stream.append(failedRecord(0, "queue_full", "Exceeds maximum queue size"));
    const answer = await post({ stream: true });
    expect([answer.status, answer.headers["retry-after"]]).toEqual([503, "1"]);
    expect(JSON.parse(answer.json)).toEqual({
      error: { message: "Exceeds maximum queue size", type: "server_error", param: null, code: "queue_full" },
    });
  });

  it("that fails later says so, and is done", async () => {
    gateway.script = (_, stream) =>
      void stream.append(record(0, delta("a")), { index: 1, choices: [], final: true, reason: "cancelled" });
    const answer = await post({ stream: true });
    expect(answer.status).toBe(200);
    expect(eventsIn(answer.json).slice(1)).toEqual([
      {
        id: undefined,
        data: '{"error":{"message":"the request was cancelled","type":"invalid_request_error","param":null,"code":"cancelled"}}',
      },
      { id: undefined, data: "[DONE]" },
    ]);
  });
});

it("answers with an id at once where the client prefers to come back", async () => {
  gateway.script = () => undefined;
  const answer = await post({ stream: true }, { prefer: "respond-async" });
  expect([answer.status, answer.headers["location"]]).toEqual([202, "/v2/requests/r0.0.1.talk"]);
  expect(gateway.only()).toMatchObject({ request: { background: true }, cancelled: false, readers: 0 });
});
