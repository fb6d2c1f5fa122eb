/** OpenAI's models, completions and chat: answers, streams, options, and refusals. */
import type { Recorder } from "../recording/recorder.js";

const greedy = { temperature: 0, max_tokens: 6 };
const messages = [
  { role: "system", content: "You tell tales." },
  { role: "user", content: "A cat" },
];

/** Members that both paths read alike, by themselves in an otherwise good body. */
const OPTIONS: readonly object[] = [
  { stream: true },
  { stream: true, stream_options: { include_usage: true } },
  { stream_options: { include_usage: true } },
  { stream: "yes" },
  { n: 2 },
  { n: 0 },
  { n: 1_000 },
  { stop: "e" },
  { stop: ["e", "a"] },
  { stop: [1] },
  { seed: 5, temperature: 1 },
  { seed: "x" },
  { temperature: 3, seed: 1 },
  { temperature: "hot" },
  { top_p: 0.5, temperature: 1, seed: 3 },
  { top_p: -1 },
  { top_k: 2, temperature: 1, seed: 3 },
  { presence_penalty: 1 },
  { presence_penalty: 9 },
  { frequency_penalty: 1 },
  { logit_bias: { "5": 1 } },
  { logprobs: 2 },
  { logprobs: true, top_logprobs: 2 },
  { max_tokens: 0 },
  { max_tokens: -1 },
  { max_tokens: 1_000_000 },
  { max_completion_tokens: 3 },
  { user: "me" },
  { metadata: { a: "b" } },
  { store: true },
  { tools: [] },
  { response_format: { type: "json_object" } },
  { unknown: 1 },
  { priority: 3 },
  { model: "absent" },
  { model: "simple" },
  { model: 5 },
  { model: undefined },
];

export async function openai(api: Recorder): Promise<void> {
  for (const path of [
    "/v1/models",
    "/v1/models/tale-gpt",
    "/v1/models/simple",
    "/v1/models/absent",
    "/v1/engines",
    "/v1/",
  ])
    await api.get(path);
  const completion = { model: "tale-gpt", prompt: "Once", ...greedy };
  const chat = { model: "tale-gpt", messages, ...greedy };
  await api.post("/v1/completions", completion);
  await api.post("/v1/chat/completions", chat);
  for (const more of OPTIONS) {
    await api.post("/v1/completions", { ...completion, ...more });
    await api.post("/v1/chat/completions", { ...chat, ...more });
  }
  for (const more of [
    { prompt: "" },
    { prompt: ["Once", "Twice"] },
    { prompt: [1, 2, 3] },
    { prompt: [[1, 2]] },
    { prompt: 5 },
    { prompt: undefined },
    { prompt: "word ".repeat(2_000) },
    { echo: true },
    { suffix: "end" },
    { best_of: 2 },
    { conversation: "here" },
  ]) {
    await api.post("/v1/completions", { ...completion, ...more });
  }
  for (const more of [
    { messages: [] },
    { messages: "text" },
    { messages: undefined },
    { messages: [{ role: "stranger", content: "x" }] },
    { messages: [{ role: "user" }] },
    { messages: [{ role: "user", content: [{ type: "text", text: "A cat" }] }] },
    { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "x" } }] }] },
    { messages: [...messages, { role: "assistant", content: "sat" }, { role: "user", content: "and?" }] },
    { conversation: "talk", conversation_start: true },
  ]) {
    await api.post("/v1/chat/completions", { ...chat, ...more });
  }
  for (const body of ["", "{", "[]", "null"]) await api.post("/v1/completions", body);
  for (let i = 0; i < 2; i += 1) await api.post("/v1/completions", completion, { "idempotency-key": "once" });
  await api.post("/v1/completions", { ...completion, max_tokens: 5 }, { "idempotency-key": "once" });
  await api.post("/v1/completions", completion, { "content-encoding": "br" });
}
