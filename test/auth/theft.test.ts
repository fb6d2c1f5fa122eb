/**
 * What one tenant hears of another tenant's things: byte for byte what it hears of things that
 * never were. The walk takes every declared path with an id, so a new path needs a kind here.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { scopes } from "../../gateway/auth/owner/scopes.js";
import { endpoints } from "../../gateway/endpoints.js";
import { FORM_TYPE, formOf } from "../files/upload.js";
import { accepted, ask, ended, simpleBody } from "../jobs/ask.js";
import { made } from "../schedules/ask.js";
import { inferLine } from "../support/batches/batches.js";
import { Receiver, WebhookClient } from "../support/jobs/webhooks.js";
import { readUntil } from "../support/until.js";
import { useKeyedFleet, type Key } from "./keyed.js";

const GENERATOR = "gen-mha";
const { served, make } = useKeyedFleet({
  models: ["simple", "accumulate", GENERATOR],
  jobs: 1,
  direct: true,
  guarded: true,
});

/** In names, labels and texts of the first tenant, and so in no answer to the second. */
const MARK = "marked-by-acme";

let acme: Key;
let other: Key;
let receiver: Receiver;
/** The ids of the first tenant's things, by the beginning of their paths. */
let ids: Readonly<Record<string, string>>;
/** All that the second tenant was answered. */
const heard: string[] = [];

const step = (start: boolean) => ({
  parameters: { sequence_id: 7, sequence_start: start },
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
});

beforeAll(async () => {
  receiver = await Receiver.start();
  acme = await make({ scopes });
  // An operator sees all tenants.
  other = await make({ tenant: "other", scopes: scopes.filter((scope) => scope !== "operator") });
  const { headers } = acme;
  const url = served.url;
  const hooks = new WebhookClient(url, headers);
  const hook = await hooks.ask<{ id: string }>("POST", "/webhooks", {
    url: receiver.url(`/${MARK}`),
    events: ["job.completed"],
  });
  const labels = { mark: MARK };
  const job = await accepted(url, "simple", { infer: simpleBody(1), labels }, headers);
  await ended(url, job.id, headers);
  const [delivery] = await readUntil(
    () => hooks.deliveries(),
    ({ length }) => length > 0,
    { patienceMs: 20_000, everyMs: 50 },
  );
  const request = await ask(`${url}/v2/models/${GENERATOR}/generate`, {
    body: { text_input: MARK, max_tokens: 2 },
    headers: { ...headers, prefer: "respond-async" },
  });
  const schedule = await made(url, "simple", { every: 3_600_000, job: { infer: simpleBody(1), labels } }, acme);
  const form = formOf([
    { field: "purpose", text: "batch" },
    { field: "file", name: `${MARK}.jsonl`, text: JSON.stringify(inferLine(0)) },
  ]);
  const file = await ask(`${url}/v1/files`, {
    body: form.toString(),
    headers: { ...headers, "content-type": FORM_TYPE },
  });
  const order = { input_file_id: file.body.id, endpoint: "/v2/models/simple/infer", completion_window: "24h" };
  const batch = await ask(`${url}/v1/batches`, { body: { ...order, metadata: { mark: MARK } }, headers });
  await ask(`${url}/v2/models/accumulate/infer`, { body: step(true), headers });
  ids = {
    "/v1/batches": batch.body.id,
    "/v1/files": file.body.id,
    "/v2/dead": "dead_1-0.0.simple",
    "/v2/deliveries": delivery?.id ?? "",
    "/v2/jobs": job.id,
    "/v2/keys": acme.id,
    "/v2/models/accumulate/sequences": "7",
    "/v2/requests": request.body.id,
    "/v2/schedules": schedule.id,
    "/v2/tenants": "acme",
    "/v2/webhooks": hook.body.id,
  };
});
afterAll(() => receiver.dispose());

/** An id of the same form that no tenant has had. */
function neverLike(id: string): string {
  if (id === "7") return "8";
  const at = Math.max(id.search(/[_-]/), 0) + 3;
  const letter = id[at] === "a" ? "b" : "a";
  return id.slice(0, at) + letter + id.slice(at + 1);
}

interface Told {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Asks as the second tenant. */
async function told(method: string, path: string, body?: object): Promise<Told> {
  const init = { method, headers: other.headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
  const answer = await fetch(served.url + path, init);
  const { date: _, "x-request-id": __, ...headers } = Object.fromEntries(answer.headers);
  const text = await answer.text();
  heard.push(JSON.stringify(headers), text);
  return { status: answer.status, headers, text };
}

/** The answer about the first tenant's thing, and about none as if it had the thing's id. */
async function both(id: string, ask: (id: string) => Promise<Told>): Promise<readonly [Told, Told]> {
  const [theirs, none] = [await ask(id), await ask(neverLike(id))];
  const named = JSON.parse(JSON.stringify(none).replaceAll(neverLike(id), id)) as Told;
  return [theirs, named];
}

/** Bodies of requests that are refused for nothing but the id. */
const bodies: Readonly<Record<string, object>> = {
  fork: { sequence_id: 99 },
  rewind: { step: 1 },
  rotate: {},
  webhooks: { enabled: false },
};
const bodyFor = (method: string, path: string): object | undefined => {
  if (method === "GET" || method === "DELETE") return undefined;
  return Object.entries(bodies).find(([part]) => path.split("/").includes(part))?.[1] ?? {};
};

describe("another tenant's thing", () => {
  // The files of the console belong to no tenant.
  const ofTenants = endpoints.filter(({ path }) => !path.startsWith("/console/"));
  const named = ofTenants.filter(({ path }) => /:(?!model\b|version\b|repository\b|region\b)\w+/.test(path));
  const statuses = { "/v2/requests/:id/ws": 426, "/v2/dead": 403, "/v2/tenants": 403 };

  it.each(named.map(({ method, path }) => [method, path] as const))("is no thing for %s %s", async (method, path) => {
    const at = path.replace(/\/versions\/:version\{[^}]*\}/, "").replace(":model", "accumulate");
    const kind = Object.keys(ids).find((one) => at.startsWith(`${one}/`)) ?? "";
    const id = ids[kind];
    if (id === undefined) throw new Error(`nobody has made a thing for ${path}`);
    const [theirs, none] = await both(id, (one) => told(method, at.replace(/:\w+/, one), bodyFor(method, at)));
    expect(theirs).toEqual(none);
    // A new sequence may have any id, and no request writes to a stream.
    const isWrite = at.endsWith("/state") ? method === "PUT" : at.endsWith("/stream") && method !== "GET";
    if (isWrite) return;
    const [, status = 404] = Object.entries(statuses).find(([one]) => at.startsWith(one)) ?? [];
    expect(theirs.status).toBe(status);
  });

  it("is no stream of a WebSocket", async () => {
    const refusal = (id: string): Promise<Told> =>
      new Promise((resolve, reject) => {
        const at = `${served.url.replace("http", "ws")}/v2/requests/${id}/ws`;
        const socket = new WebSocket(at, { headers: other.headers });
        socket.on("open", () => reject(new Error("it is open")));
        socket.on("unexpected-response", (_, answer) => {
          let text = "";
          answer.on("data", (piece: Buffer) => (text += piece.toString()));
          answer.on("end", () => resolve({ status: answer.statusCode ?? 0, headers: {}, text }));
        });
      });
    const [theirs, none] = await both(ids["/v2/requests"] ?? "", refusal);
    expect([theirs, theirs.status]).toEqual([none, 404]);
  });

  it("is nothing that a request can name", async () => {
    const order = (file: string) => ({
      input_file_id: file,
      endpoint: "/v2/models/simple/infer",
      completion_window: "24h",
    });
    const [file, noFile] = await both(ids["/v1/files"] ?? "", (id) => told("POST", "/v1/batches", order(id)));
    expect([file, file.status]).toEqual([noFile, 400]);
    const [ticket, noTicket] = await both(ids["/v2/requests"] ?? "", (id) =>
      told("POST", "/v2/tickets", { request: id }),
    );
    expect([ticket, ticket.status]).toEqual([noTicket, 404]);
    const job = (id: string) => ({ infer: simpleBody(1), webhook: { id } });
    const hooked = (id: string) => told("POST", "/v2/models/simple/jobs", job(id));
    const [hook, noHook] = await both(ids["/v2/webhooks"] ?? "", hooked);
    expect(hook).toEqual(noHook);
    expect(hook.status).toBeGreaterThanOrEqual(400);
  });

  it.each([
    ["/v2/jobs?after=", "/v2/jobs"],
    ["/v2/jobs?schedule=", "/v2/schedules"],
    ["/v2/schedules?after=", "/v2/schedules"],
    ["/v2/deliveries?job=", "/v2/jobs"],
    ["/v2/deliveries?webhook=", "/v2/webhooks"],
    ["/v1/files?after=", "/v1/files"],
    ["/v1/batches?after=", "/v1/batches"],
  ])("is no place in a list: %s", async (path, kind) => {
    const [theirs, none] = await both(ids[kind] ?? "", (id) => told("GET", path + id));
    expect(theirs).toEqual(none);
  });

  it.each([
    "/v2/jobs",
    `/v2/jobs?label=mark:${MARK}`,
    "/v2/schedules",
    "/v2/webhooks",
    "/v2/deliveries",
    "/v1/files",
    "/v1/batches",
    "/v2/models/accumulate/sequences",
  ])("is in no list: %s", async (path) => {
    const { status, text } = await told("GET", path);
    expect([path, status]).toEqual([path, 200]);
    const { data, sequences } = JSON.parse(text) as { data?: unknown[]; sequences?: unknown[] };
    expect(data ?? sequences).toEqual([]);
  });
});

describe("a name that two tenants use", () => {
  it("is each tenant's own: an Idempotency-Key, a sequence", async () => {
    const twice = async (key: Key): Promise<[string, number]> => {
      const headers = { ...key.headers, "idempotency-key": "the same" };
      const job = { infer: simpleBody(1), delay: 3_600_000 };
      const { body } = await ask(`${served.url}/v2/models/simple/jobs`, { body: job, headers });
      const infer = `${served.url}/v2/models/accumulate/infer`;
      const begun = await ask(infer, { body: step(true), headers: key.headers });
      const { outputs } = begun.body as unknown as { outputs: readonly { readonly data: readonly number[] }[] };
      return [body.id, outputs[0]?.data[0] ?? NaN];
    };
    const [[job, sum], [again], [fresh, freshSum]] = [await twice(acme), await twice(acme), await twice(other)];
    expect(again).toBe(job);
    expect(fresh).not.toBe(job);
    expect([sum, freshSum]).toEqual([1, 1]);
    expect((await told("GET", `/v2/jobs/${job}`)).status).toBe(404);
  });
});

it("leaves no mark of the first tenant in what the second was answered", () => {
  expect(heard.length).toBeGreaterThan(50);
  expect(heard.filter((text) => text.includes(MARK))).toEqual([]);
});
