/** OpenAI's paths refuse requests in OpenAI's form. */
import { describe, expect, it } from "vitest";
import { errorKinds, InferenceError, type ErrorCode } from "#shared/errors.js";
import { generators, useGateway } from "../../support/gateway/test-gateway.js";
import { type Answer, exchange, openAiError, type Body } from "../../support/gateway/http.js";
import { chatBody, completionBody } from "../../fixtures/requests.js";

const gateway = useGateway({ models: generators });

const post = (path: string, body: Body, headers: Record<string, string> = {}): Promise<Answer> =>
  exchange(`${gateway.url}/v1/${path}`, body, headers);

const completion = (members: object): object => ({ ...completionBody, ...members });
const chat = (members: object): object => ({ ...chatBody, ...members });
const saying = (message: unknown): object => ({ ...chatBody, messages: [message] });
const many = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);

const tooMuch = (name: string, bytes: number): string => `${name} has ${bytes} bytes, more than the limit of 1048576`;

describe("a body that asks for what there is not", () => {
  // prettier-ignore
  const cases: [what: string, path: string, body: object, param: string, message: string][] = [
    ["10^9 tokens", "completions", completion({ max_tokens: 1e9 }), "max_tokens", "max_tokens must be a whole number from 1 to 4096, got 1000000000"],
    ["10^6 choices", "completions", completion({ n: 1e6 }), "n", "n must be a whole number from 1 to 8, got 1000000"],
    ["10^5 stop strings", "completions", completion({ stop: many(1e5, "x") }), "stop", "stop has 100000 strings, more than the limit of 16"],
    ["2000 biases", "completions", completion({ logit_bias: Object.fromEntries(many(2000, 0).map((_, id) => [id, 1])) }), "logit_bias", "logit_bias has 2000 entries, more than the limit of 1024"],
    ["no prompt", "completions", { model: "talk" }, "prompt", "prompt must be given"],
    ["an empty prompt", "completions", completion({ prompt: "" }), "prompt", "prompt must not be empty"],
    ["an empty list for a prompt", "completions", completion({ prompt: [] }), "prompt", "prompt must not be empty"],
    ["an empty prompt among others", "completions", completion({ prompt: ["a", ""] }), "prompt", "prompt must not be empty"],
    ["a prompt over the context", "completions", completion({ prompt: many(4096, 1) }), "prompt", "prompt has 4096 tokens, which leaves no room in the model's context of 4096"],
    ["a prompt of over a megabyte", "completions", completion({ prompt: "é".repeat(600_000) }), "prompt", tooMuch("prompt", 1_200_000)],
    ["messages of over a megabyte", "chat/completions", saying({ role: "user", content: "a".repeat(1_100_000) }), "messages", tooMuch("messages", 1_100_030)],
    ["33 prompts", "completions", completion({ prompt: many(33, "a") }), "prompt", "prompt has 33 prompts, more than the limit of 32"],
    ["tokens of no vocabulary", "completions", completion({ prompt: [1, 1000] }), "prompt", "prompt must hold token ids of the vocabulary, from 0 to 999, got 1000"],
    ["prompts of another kind", "completions", completion({ prompt: [{}] }), "prompt", "prompt must be a string, a list of tokens or a list of these, got {}"],
    ["a suffix", "completions", completion({ suffix: "end" }), "suffix", "suffix is not supported"],
    ["21 log probabilities", "completions", completion({ logprobs: 21 }), "logprobs", "logprobs must be a whole number from 0 to 20, got 21"],
    ["an echo of tokens", "completions", completion({ prompt: [1], echo: true }), "echo", "echo is only supported for prompts that are text"],
    ["an echo with log probabilities", "completions", completion({ logprobs: 1, echo: true }), "echo", "echo is not supported together with logprobs"],
    ["JSON", "completions", completion({ response_format: { type: "json_object" } }), "response_format", 'response_format must be {"type":"text"}: other formats are not supported'],
    ["JSON in a chat", "chat/completions", chat({ response_format: { type: "json_schema" } }), "response_format", 'response_format must be {"type":"text"}: other formats are not supported'],
    ["usage without a stream", "chat/completions", chat({ stream_options: { include_usage: true } }), "stream_options", "stream_options is only allowed when stream is true"],
    ["a stream that is no boolean", "chat/completions", chat({ stream: "yes" }), "stream", 'stream must be true or false, got "yes"'],
    ["several prompts in a conversation", "completions", completion({ prompt: ["a", "b"], sequence_id: 1 }), "prompt", "prompt must be a single one for a turn of a conversation"],
    ["several choices in a conversation", "chat/completions", chat({ n: 2, sequence_id: 1 }), "n", "n must be 1 for a turn of a conversation, got 2"],
    ["a turn of no conversation", "chat/completions", chat({ sequence_start: true }), "sequence_id", "sequence_start and sequence_end need a sequence_id that is not 0 and not empty"],
    ["no messages", "chat/completions", { model: "talk" }, "messages", "messages must be a list of messages, got null"],
    ["an empty list of messages", "chat/completions", chat({ messages: [] }), "messages", "messages must not be empty"],
    ["5000 messages", "chat/completions", chat({ messages: many(5000, {}) }), "messages", "messages has 5000 messages, more than the limit of 4096"],
    ["a message of another kind", "chat/completions", saying("hi"), "messages[0]", 'messages[0] must be an object, got "hi"'],
    ["a message without a role", "chat/completions", saying({ content: "hi" }), "messages[0].role", "messages[0].role must be one of system, developer, user, assistant, tool, got null"],
    ["a message of an unknown role", "chat/completions", saying({ role: "<|im_start|>", content: "hi" }), "messages[0].role", 'messages[0].role must be one of system, developer, user, assistant, tool, got "<|im_start|>"'],
    ["a message without content", "chat/completions", saying({ role: "user" }), "messages[0].content", "messages[0].content must be given"],
    ["a picture", "chat/completions", saying({ role: "user", content: [{ type: "image_url", image_url: { url: "x" } }] }), "messages[0].content[0]", "messages[0].content[0] must be a part of type text: other types are not supported"],
    ["tools", "chat/completions", chat({ tools: [{}] }), "tools", 'tools is not supported: leave it out or give [] or a tool_choice of "none"'],
    ["tools of another kind", "chat/completions", chat({ tools: {}, tool_choice: "auto" }), "tools", 'tools is not supported: leave it out or give [] or a tool_choice of "none"'],
    ["a tool that must be called", "chat/completions", chat({ tools: [{}], tool_choice: "required" }), "tool_choice", "tool_choice must be auto or none: no tool can be called"],
    ["a stream of equal lengths", "chat/completions", chat({ stream: true, stream_options: { include_obfuscation: true } }), "stream_options.include_obfuscation", "stream_options.include_obfuscation is not supported: leave it out or give false"],
    ["an unknown option of a stream", "completions", completion({ stream: true, stream_options: { sizes: 1 } }), "stream_options.sizes", "Unrecognized request argument supplied: stream_options.sizes"],
    ["a text of a kind", "completions", completion({ response_format: { type: "text", json_schema: {} } }), "response_format.json_schema", "Unrecognized request argument supplied: response_format.json_schema"],
    ["a part with a language", "chat/completions", saying({ role: "user", content: [{ type: "text", text: "x", lang: "en" }] }), "messages[0].content[0].lang", "Unrecognized request argument supplied: messages[0].content[0].lang"],
    ["a member of a long name", "completions", completion({ ["x".repeat(1000)]: 1 }), "x".repeat(64), `Unrecognized request argument supplied: ${"x".repeat(64)}`],
    ["a chat's prompt", "chat/completions", chat({ prompt: "x" }), "prompt", "Unrecognized request argument supplied: prompt"],
    ["a completion's messages", "completions", completion({ messages: [] }), "messages", "Unrecognized request argument supplied: messages"],
    ["an object's own", "completions", completion({ constructor: 1 }), "constructor", "Unrecognized request argument supplied: constructor"],
    ["alternatives without log probabilities", "chat/completions", chat({ top_logprobs: 2 }), "top_logprobs", "top_logprobs is only allowed when logprobs is true"],
    ["a chat without a template", "chat/completions", chat({ model: "mute" }), "model", "The model 'mute' has no chat template and thus does not support chat; its path is /v1/completions"],
    ["text of a tensor model", "completions", completion({ model: "tensor" }), "model", "The model 'tensor' does not generate text; its path is /v2/models/tensor/infer"],
    ["no model", "completions", { prompt: "a" }, "model", "model must be given"],
  ];
  it.each(cases)("%s", async (_, path, body, param, message) => {
    const answer = await post(path, body);
    expect(openAiError(answer)).toEqual({ message, type: "invalid_request_error", param, code: "invalid_argument" });
    expect(answer.status).toBe(400);
    expect(gateway.streams).toHaveLength(0);
  });

  it("300 000 biases are more members than an object may have", async () => {
    const biases = Array.from({ length: 300_000 }, (_, id) => `"${id}":1`).join(",");
    const answer = await post("completions", `{"model":"talk","prompt":"a","logit_bias":{${biases}}}`);
    expect([answer.status, openAiError(answer)["message"]]).toEqual([
      400,
      expect.stringMatching(/^failed to parse the request JSON buffer: More object members than the limit of 10000 at/),
    ]);
  });

  it("prompts for later are one at a time", async () => {
    const answer = await post("completions", completion({ prompt: ["a", "b"] }), { prefer: "respond-async" });
    expect([answer.status, openAiError(answer)["param"]]).toEqual([400, "prompt"]);
  });
});

describe("a model that is not there", () => {
  const unknown = { type: "invalid_request_error", param: "model", code: "model_not_found" };

  it.each([
    ["completions", completion({ model: "x" })],
    ["chat/completions", chat({ model: "x" })],
  ])("is not found by %s", async (path, body) => {
    const answer = await post(path, body);
    expect([answer.status, openAiError(answer)]).toEqual([
      404,
      { message: "The model 'x' does not exist", ...unknown },
    ]);
  });

  it("is not listed, and nor is one that does not generate", async () => {
    const list = await exchange(`${gateway.url}/v1/models`, "", {}, "GET");
    expect(JSON.parse(list.json)).toEqual({
      object: "list",
      data: ["mute", "talk"].map((id) => ({ id, object: "model", created: 0, owned_by: "baton", max_model_len: 4096 })),
    });
    const [missing, tensor] = await Promise.all(
      ["x%2F..", "tensor"].map((name) => exchange(`${gateway.url}/v1/models/${name}`, "", {}, "GET")),
    );
    expect([missing?.status, tensor?.status]).toEqual([404, 404]);
    expect(openAiError(tensor as Answer)).toEqual({ message: "The model 'tensor' does not generate text", ...unknown });
  });
});

describe("a request that cannot be served", () => {
  const ask = async (method: string, path: string, body = ""): Promise<[number, unknown]> => {
    const answer = await exchange(`${gateway.url}${path}`, body, {}, method);
    return [answer.status, openAiError(answer)];
  };
  const refusal = (message: unknown, code: ErrorCode): [number, object] => [
    errorKinds[code].status,
    { message, type: "invalid_request_error", param: null, code },
  ];

  it("has an unknown path", async () => {
    expect(await ask("POST", "/v1/embeddings")).toEqual(
      refusal("Unknown request URL: POST /v1/embeddings", "not_found"),
    );
    expect(await ask("GET", "/v1/models/a/b")).toEqual(refusal("Unknown request URL: GET /v1/models/a/b", "not_found"));
  });

  it("has another method", async () => {
    const message = "Not allowed to GET on /v1/chat/completions";
    expect(await ask("GET", "/v1/chat/completions")).toEqual(refusal(message, "method_not_allowed"));
    expect((await ask("POST", "/v1/models"))[0]).toBe(405);
    expect((await ask("DELETE", "/v1/models/talk"))[0]).toBe(405);
  });

  it("has a body that is no JSON", async () => {
    const message = expect.stringMatching(/^failed to parse the request JSON buffer/) as unknown;
    expect(await ask("POST", "/v1/completions", "{")).toEqual(refusal(message, "invalid_json"));
    expect(await ask("POST", "/v1/completions", "")).toEqual(refusal(message, "invalid_json"));
    const latin = await post("completions", Buffer.from('{"model":"talk","prompt":"\xff"}', "latin1"));
    expect([latin.status, openAiError(latin)]).toEqual(refusal(message, "invalid_json"));
  });

  it("has too large a body", async () => {
    const answer = await post("completions", Buffer.alloc(4 * 1024 * 1024 + 1, 0x20));
    expect([answer.status, openAiError(answer)]).toEqual(
      refusal("request body is larger than the limit of 4194304 bytes", "payload_too_large"),
    );
  });

  it("has a body in an unknown encoding", async () => {
    const answer = await post("completions", completion({}), { "content-encoding": "br" });
    expect([answer.status, answer.headers["accept-encoding"], openAiError(answer)["type"]]).toEqual([
      501,
      "gzip, deflate",
      "server_error",
    ]);
  });

  it("has an invalid Idempotency-Key", async () => {
    const answer = await post("completions", completion({}), { "idempotency-key": "x".repeat(256) });
    expect([answer.status, openAiError(answer)["code"]]).toEqual([400, "invalid_argument"]);
  });
});

describe("a request that the fleet refuses", () => {
  it.each<[ErrorCode, number, string, string | undefined]>([
    ["sequence_limit", 429, "rate_limit_error", "1"],
    ["queue_full", 503, "server_error", "1"],
    ["idempotency_mismatch", 422, "invalid_request_error", undefined],
    ["sequence_start_required", 400, "invalid_request_error", undefined],
    ["expired", 503, "server_error", undefined],
  ])("with %s has status %i", async (code, status, type, retryAfter) => {
    gateway.script = () => {
      throw new InferenceError(code, "no");
    };
    for (const stream of [false, true]) {
      const answer = await post("chat/completions", chat({ stream }));
      expect(openAiError(answer)).toEqual({ message: "no", type, param: null, code });
      expect([answer.status, answer.headers["retry-after"]]).toEqual([status, retryAfter]);
    }
  });

  it("cancels the prompts that it had admitted", async () => {
    gateway.script = ({ spec: { prompt } }) => {
      if (prompt.kind === "text" && prompt.text === "b") throw new InferenceError("queue_full", "full");
    };
    const answer = await post("completions", completion({ prompt: ["a", "b"] }));
    expect(answer.status).toBe(503);
    expect(gateway.only().cancelled).toBe(true);
  });

  it("by a bug says nothing of it", async () => {
    gateway.script = () => {
      throw new TypeError("secret");
    };
    const answer = await post("chat/completions", chat({}));
    expect([answer.status, openAiError(answer)["message"]]).toEqual([500, "internal error"]);
    expect(gateway.logged.at(-1)?.fields["path"]).toBe("/v1/chat/completions");
  });
});
