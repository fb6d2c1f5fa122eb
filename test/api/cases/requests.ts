/** `/v2/requests/<id>`: requests in the background, their states, streams and ends. */
import { readSocket } from "../../support/streams/websocket.js";
import { jsonOf, type Recorder } from "../recording/recorder.js";

const background = { prefer: "respond-async" };
const tale = (more: object = {}) => ({ text_input: "Once", temperature: 0, max_tokens: 6, ...more });
const ENDED = ["completed", "failed", "cancelled", "expired"];

export async function requests(api: Recorder): Promise<void> {
  await api.get("/v2/asyncapi.json");
  const stream = await api.post("/v2/models/tale-gpt/generate_stream", tale(), background);
  await readings(api, jsonOf(stream).id);
  await tensors(api);
  await ends(api);
  for (const id of ["none", "x".repeat(400), "a.b.c.d"]) {
    for (const rest of ["", "/events", "/stream?offset=-1"]) await api.get(`/v2/requests/${id}${rest}`);
  }
}

async function readings(api: Recorder, id: string): Promise<void> {
  const path = `/v2/requests/${id}`;
  await api.until(path, ({ state }) => ENDED.includes(state));
  await api.get(`${path}/events`);
  for (const after of ["0", "2", "99", "-1", "x", ""]) await api.get(`${path}/events?after=${after}`);
  await api.get(`${path}/events`, { "last-event-id": "1" });
  await api.get(`${path}/events`, { "last-event-id": "x" });
  await api.send({ method: "HEAD", path: `${path}/events` });
  await api.send({ method: "HEAD", path: `${path}/stream` });
  for (const query of [
    "",
    "?offset=-1",
    "?offset=now",
    "?offset=x",
    "?offset=-1&live=sse",
    "?offset=-1&live=long-poll",
    "?offset=-1&live=sse&format=text",
    "?offset=-1&format=other",
    "?live=sse",
    "?offset=-1&other=1",
  ]) {
    await api.get(`${path}/stream${query}`);
  }
  for (const query of ["", "?after=1", "?after=99", "?after=x"]) await socket(api, `${path}/ws${query}`);
  await api.get(`${path}/ws`);
  await api.post(`${path}/detach`);
  await api.delete(path);
  await api.as("stranger").get(path);
  for (const body of [
    {},
    { from: 0 },
    { from: -1 },
    { durable: "mine" },
    { durable: "a b" },
    { ttl: 5 },
    { other: 1 },
    "[",
  ])
    await api.post(`${path}/subscription`, body);
}

/** Keeps the messages of a WebSocket as lines, or the refusal. */
async function socket(api: Recorder, path: string): Promise<void> {
  const records: string[] = [];
  const headers = { "x-tenant": "requests" };
  const onRecord = (record: string) => records.push(record) > 0;
  const end = await readSocket({ gateway: api.url, path, headers, onRecord });
  const body = Buffer.from([...records, JSON.stringify(end)].join("\n"));
  api.keep(`WebSocket ${path}`, { status: end.kind === "answered" ? end.status : 101, headers: {}, body });
}

async function tensors(api: Recorder): Promise<void> {
  const SIXTEEN = Array.from({ length: 16 }, (_, i) => i);
  const inputs = ["INPUT0", "INPUT1"].map((name) => ({ name, datatype: "INT32", shape: [1, 16], data: SIXTEEN }));
  const { id } = jsonOf(await api.post("/v2/models/simple/infer", { inputs }, background));
  await api.until(`/v2/requests/${id}`, ({ state }) => ENDED.includes(state));
  for (const rest of ["/events", "/stream?offset=-1", "/ws"]) await api.get(`/v2/requests/${id}${rest}`);
  await api.post(`/v2/requests/${id}/subscription`, {});
  const failing = { inputs: [{ name: "INPUT", datatype: "INT64", shape: [1, 1], data: [13] }] };
  const failed = jsonOf(await api.post("/v2/models/picky/infer", failing, background));
  await api.until(`/v2/requests/${failed.id}`, ({ state }) => ENDED.includes(state));
}

async function ends(api: Recorder): Promise<void> {
  const endless = tale({ max_tokens: 400, ignore_eos: true });
  const { id } = jsonOf(
    await api.ask({ method: "POST", path: "/v2/models/tale-gpt/generate_stream", headers: background, body: endless }),
  );
  await api.post(`/v2/requests/${id}/detach`);
  await api.delete(`/v2/requests/${id}`);
  await api.delete(`/v2/requests/${id}`);
}
