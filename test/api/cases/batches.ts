/** OpenAI's files and batches: forms, lists, contents, runs with good and bad lines, refusals. */
import { jsonOf, type Answer, type Headers, type Recorder } from "../recording/recorder.js";
import { infer } from "./jobs.js";

const url = "/v2/models/simple/infer";
const line = (id: string, more: object = {}) => ({ custom_id: id, method: "POST", url, body: infer, ...more });
const ENDED = ["completed", "failed", "expired", "cancelled"];
const BOUNDARY = "recorded-boundary";

export async function batches(api: Recorder): Promise<void> {
  await forms(api);
  const input = [
    line("a"),
    line("b", { body: { inputs: [] } }),
    line("a"),
    line("c", { method: "GET" }),
    line("d", { url: "/v1/completions" }),
    { custom_id: "e" },
    line("f", { extra: 1 }),
    line("g", { body: { ...infer, stream: true } }),
  ];
  const texts = [...input.map((one) => JSON.stringify(one)), "no JSON", ""].join("\n");
  const { id: file } = jsonOf(await upload(api, texts));
  const asked = { input_file_id: file, endpoint: url, completion_window: "24h" };
  await run(api, asked);
  const tale = (id: string, body: object) => ({
    custom_id: id,
    method: "POST",
    url: "/v1/completions",
    body: { model: "tale-gpt", prompt: "Once", temperature: 0, max_tokens: 4, ...body },
  });
  const tales = [
    tale("one", {}),
    tale("two", { max_tokens: -1 }),
    tale("three", { model: "absent" }),
    tale("four", { stream: true }),
  ];
  const { id: other } = jsonOf(await upload(api, tales.map((one) => JSON.stringify(one)).join("\n")));
  await run(api, { ...asked, input_file_id: other, endpoint: "/v1/completions", metadata: { kind: "tale" } });

  for (const more of [
    { input_file_id: "file-none" },
    { input_file_id: undefined },
    { input_file_id: 5 },
    { endpoint: "/v1/embeddings" },
    { endpoint: undefined },
    { completion_window: "soon" },
    { completion_window: undefined },
    { metadata: 5 },
    { metadata: { a: 1 } },
    { other: 1 },
  ]) {
    await api.post("/v1/batches", { ...asked, ...more });
  }
  for (const body of ["", "{", "[]"]) await api.post("/v1/batches", body);
  for (let i = 0; i < 2; i += 1) {
    const { id } = jsonOf(
      await api.ask({ method: "POST", path: "/v1/batches", body: asked, headers: { "idempotency-key": "b" } }),
    );
    await api.until(`/v1/batches/${id}`, ({ status }) => ENDED.includes(status));
  }
  await api.post("/v1/batches", { ...asked, metadata: { a: "b" } }, { "idempotency-key": "b" });
  for (const query of ["?limit=1", "?limit=0", "?after=none", "?other=1"]) await api.get(`/v1/batches${query}`);
  await api.get("/v1/batches");
  for (const query of [
    "",
    "?limit=1",
    "?order=asc",
    "?order=x",
    "?purpose=batch",
    "?purpose=none",
    "?after=none",
    "?limit=0",
    "?other=1",
  ])
    await api.get(`/v1/files${query}`);
  for (const rest of ["", "/content"]) {
    await api.as("stranger").get(`/v1/files/${file}${rest}`);
    await api.send({ method: "HEAD", path: `/v1/files/${file}${rest}` });
  }
  await api.delete(`/v1/files/${file}`);
  await api.delete(`/v1/files/${file}`);
  await api.get(`/v1/files/${file}/content`);
}

/** Runs a batch to its end, and reads its files. */
async function run(api: Recorder, asked: object): Promise<void> {
  const { id } = jsonOf(await api.post("/v1/batches", asked));
  const ended = jsonOf(await api.until(`/v1/batches/${id}`, ({ status }) => ENDED.includes(status)));
  for (const file of [ended.output_file_id, ended.error_file_id]) {
    if (file === null || file === undefined) continue;
    await api.get(`/v1/files/${file}`);
    const answer = await api.ask({ method: "GET", path: `/v1/files/${file}/content` });
    api.keep(`GET /v1/files/${file}/content`, { ...answer, body: sorted(answer.body) });
  }
  await api.post(`/v1/batches/${id}/cancel`);
  await api.as("stranger").get(`/v1/batches/${id}`);
}

/** Lines are written in the order in which they ended. */
function sorted(content: Buffer): Buffer {
  const idOf = (text: string) => String((JSON.parse(text) as { custom_id: unknown }).custom_id) + text.slice(-60);
  const lines = content
    .toString()
    .split("\n")
    .filter((text) => text !== "");
  return Buffer.from(lines.toSorted((one, other) => (idOf(one) < idOf(other) ? -1 : 1)).join("\n"));
}

async function forms(api: Recorder): Promise<void> {
  const good = ["purpose", "batch"] as const;
  const send = async (fields: readonly (readonly [string, string])[], name?: string, headers: Headers = {}) => {
    await upload(api, "{}", fields, name, headers);
  };
  await send([]);
  await send([["purpose", "other"]]);
  await send([good, ["other", "x"]]);
  await send([good, good]);
  await send([good], "");
  await send([good, ["expires_after[anchor]", "created_at"], ["expires_after[seconds]", "3600"]]);
  await send([good, ["expires_after[anchor]", "created_at"]]);
  await send([good, ["expires_after[anchor]", "x"], ["expires_after[seconds]", "3600"]]);
  await send([good, ["expires_after[anchor]", "created_at"], ["expires_after[seconds]", "1"]]);
  await send([good], "a.jsonl", { "content-encoding": "gzip" });
  await api.post("/v1/files", "no form", { "content-type": `multipart/form-data; boundary=${BOUNDARY}` });
  await api.post("/v1/files", "{}", { "content-type": "application/json" });
  await api.post("/v1/files");
}

function upload(
  api: Recorder,
  content: string,
  fields: readonly (readonly [string, string])[] = [["purpose", "batch"]],
  name = "lines.jsonl",
  headers: Headers = {},
): Promise<Answer> {
  const parts = [
    ...fields.map(([field, value]) => `Content-Disposition: form-data; name="${field}"\r\n\r\n${value}`),
    `Content-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: application/jsonl\r\n\r\n${content}`,
  ];
  const body = `${parts.map((part) => `--${BOUNDARY}\r\n${part}\r\n`).join("")}--${BOUNDARY}--\r\n`;
  return api.post("/v1/files", body, { "content-type": `multipart/form-data; boundary=${BOUNDARY}`, ...headers });
}
