/**
 * Members of a request that would change the answer and that Baton does not obey. A gateway refuses
 * each by name, and accepts values that ask for no change.
 */
import { describe, expect, it } from "vitest";
import { generators, useGateway } from "../../support/gateway/test-gateway.js";
import { type Answer, exchange, openAiError } from "../../support/gateway/http.js";
import { chatBody, completionBody } from "../../fixtures/requests.js";

const gateway = useGateway({ models: generators });

const bodies = { completions: completionBody, "chat/completions": chatBody } as const;
const paths = ["completions", "chat/completions"] as const;

const post = (path: (typeof paths)[number], members: object): Promise<Answer> =>
  exchange(`${gateway.url}/v1/${path}`, { ...bodies[path], ...members });

const schema = { type: "object", properties: { a: { type: "string" } } };
const tool = { type: "function", function: { name: "now", parameters: schema } };

describe.each(paths)("%s", (path) => {
  // prettier-ignore
  const cases: [name: string, refused: readonly unknown[], taken: readonly unknown[]][] = [
    ["guided_json", [schema, "{}"], [null]],
    ["guided_regex", ["a+", ""], [null]],
    ["guided_choice", [["a", "b"]], [null]],
    ["guided_grammar", ["root ::= 'a'"], [null]],
    ["guided_decoding_backend", ["outlines"], [null]],
    ["guided_whitespace_pattern", [" "], [null]],
    ["structured_outputs", [{ json: schema }], [null]],
    ["structural_tag", ["{}"], [null]],
    ["bad_words", [["a"]], [null, [], ""]],
    ["allowed_token_ids", [[1], []], [null]],
    ["functions", [[tool.function]], [null, []]],
    ["function_call", [{ name: "now" }], [null, "none", "auto"]],
    ["tools", [[tool]], [null, []]],
    ["tool_choice", ["required", tool], [null, "none", "auto"]],
    ["chat_template", ["{{ messages }}"], [null]],
    ["chat_template_kwargs", [{ enable_thinking: false }], [null, {}]],
    ["continue_final_message", [true], [null, false]],
    ["documents", [[{ text: "a" }]], [null, []]],
    ["truncate_prompt_tokens", [5, -1], [null]],
    ["prompt_logprobs", [0, 1], [null]],
    ["prompt_embeds", ["AAAA"], [null]],
    ["return_token_ids", [true], [null, false]],
    ["return_tokens_as_token_ids", [true], [null, false]],
    ["include_stop_str_in_output", [true], [null, false]],
    ["skip_special_tokens", [false], [null, true]],
    ["spaces_between_special_tokens", ["no"], [null, true, false]],
    ["use_beam_search", [true], [null, false]],
    ["length_penalty", [1.5, 0], [null, 1]],
    ["early_stopping", [true], [null, false]],
    ["priority", [1, -1], [null, 0]],
    ["logits_processors", [["x"]], [null, []]],
    ["reasoning_effort", ["low", "medium", "high"], [null, "none"]],
    ["verbosity", ["low", "high"], [null, "medium"]],
    ["modalities", [["text", "audio"], ["audio"]], [null, ["text"]]],
    ["audio", [{ voice: "alloy", format: "mp3" }], [null]],
    ["web_search_options", [{}, { search_context_size: "low" }], [null]],
    ["prediction", [{ type: "content", content: "a" }], [null]],
    ["response_format", [{ type: "json_object" }], [null, { type: "text" }]],
    ["add_special_tokens", [path !== "completions"], [null, path === "completions"]],
    ["no_such_thing", [0, false, "", [], {}], [null]],
  ];

  it.each(cases)("%s is refused by name", async (name, refused) => {
    for (const value of refused) {
      const answer = await post(path, { [name]: value });
      expect([answer.status, openAiError(answer)]).toEqual([
        400,
        {
          message: expect.stringContaining(name) as unknown,
          type: "invalid_request_error",
          param: name,
          code: "invalid_argument",
        },
      ]);
    }
    expect(gateway.streams).toHaveLength(0);
  });

  it.each(cases)("%s is taken where it asks for nothing", async (name, _, taken) => {
    for (const value of taken) expect([value, (await post(path, { [name]: value })).status]).toEqual([value, 200]);
    expect(gateway.streams).toHaveLength(taken.length);
  });

  it.each([
    ["user", "u"],
    ["metadata", { a: "b" }],
    ["store", true],
    ["service_tier", "auto"],
    ["safety_identifier", "s"],
    ["prompt_cache_key", "k"],
    ["prompt_cache_retention", "24h"],
    ["parallel_tool_calls", true],
  ])("%s is of no consequence to the answer", async (name, value) => {
    expect((await post(path, { [name]: value })).status).toBe(200);
  });

  it.each([
    { n: 1, best_of: 1, temperature: 1, top_p: 1, presence_penalty: 0, frequency_penalty: 0, stream: false },
    {
      stream: true,
      stream_options: { include_usage: true, include_obfuscation: false, continuous_usage_stats: false },
    },
    { top_k: 5, min_p: 0.1, repetition_penalty: 1.1, min_tokens: 1, ignore_eos: true, stop_token_ids: [7], seed: 1 },
    {
      logit_bias: { 7: 1 },
      stop: ["a"],
      max_tokens: 5,
      max_completion_tokens: 5,
      sequence_id: 5,
      sequence_start: true,
    },
  ])("what is obeyed is taken: %j", async (members) => {
    expect((await post(path, members)).status).toBe(200);
  });
});

it("tools that shall not be called are taken, and not told of", async () => {
  expect((await post("chat/completions", { tools: [tool], tool_choice: "none" })).status).toBe(200);
  expect(gateway.only().request.spec.prompt).not.toHaveProperty("tools");
});
