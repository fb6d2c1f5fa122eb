/**
 * A model that a key may not use has, on every path and in every line, the answer of a model that
 * never was. The walk takes every declared path with a model, so it has the next one, too.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { scopes } from "../../gateway/auth/owner/scopes.js";
import { endpoints } from "../../gateway/endpoints.js";
import { FORM_TYPE, formOf } from "../files/upload.js";
import { accepted, ask, ended, standing } from "../jobs/ask.js";
import { made } from "../schedules/ask.js";
import { inferLine, linesOf } from "../support/batches/batches.js";
import { useKeyedFleet, type Key } from "./keyed.js";

const [ALLOWED, HIDDEN, NEVER] = ["simple", "gen-mha", "gen-mhb"];
const fleet = useKeyedFleet({
  models: [ALLOWED, HIDDEN],
  jobs: 1,
  direct: true,
  guarded: true,
  env: { BATON_AUTH_OPEN: "health,metadata" },
});
const { served, make, setTenant } = fleet;
let all: Key;
let some: Key;
beforeAll(async () => {
  all = await make({ scopes });
  some = await make({ scopes, models: ["*", "!gen-*"] });
});

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

async function answerTo(path: string, key: Key, method: string, body?: object): Promise<Answer> {
  const init = { method, headers: key.headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
  const { status, headers, text } = await fetch(served.url + path, init).then(async (answer) => ({
    status: answer.status,
    headers: answer.headers,
    text: await answer.text(),
  }));
  const { date: _, "x-request-id": __, ...rest } = Object.fromEntries(headers);
  return { status, headers: rest, text };
}

/** The answers about a hidden model, and about no model as if it had the name of the hidden. */
async function both(path: string, method: string, body?: (model: string) => object): Promise<[Answer, Answer]> {
  const about = (model: string) => answerTo(path.replaceAll(":model", model), some, method, body?.(model));
  const [hidden, never] = [await about(HIDDEN), await about(NEVER)];
  return [hidden, { ...never, text: never.text.replaceAll(NEVER, HIDDEN) }];
}

describe("a hidden model", () => {
  const openPaths = ["metadata", "health"];
  const paths = endpoints.filter(
    ({ path, open }) => path.includes(":model") && (open === undefined || !openPaths.includes(open)),
  );

  it.each(paths.map(({ method, path }) => [method, path] as const))("is no model for %s %s", async (method, path) => {
    const at = path.replaceAll(/:version\{[^}]*\}/g, "1").replaceAll(/:(?!model)\w+/g, "7");
    const [hidden, never] = await both(at, method, method === "GET" ? undefined : () => ({ inputs: [] }));
    expect(hidden).toEqual(never);
    expect(hidden.status).not.toBe(200);
  });

  it.each(["/v1/completions", "/v1/chat/completions", "/v2/subscriptions"])("is no model for %s", async (path) => {
    const body = (model: string) =>
      path.includes("chat")
        ? { model, messages: [{ role: "user", content: "a" }] }
        : path.startsWith("/v1")
          ? { model, prompt: "a" }
          : { model };
    const [hidden, never] = await both(path, "POST", body);
    expect(hidden).toEqual(never);
    expect([hidden.status, (await answerTo(path, all, "POST", body(HIDDEN))).status]).toEqual([404, 200]);
  });

  it.each(["/v2/models/:model", "/v2/models/:model/ready", "/v1/models/:model"])(
    "is no model for %s, which anybody may ask without a key",
    async (path) => {
      const [hidden, never] = await both(path, "GET");
      expect(hidden).toEqual(never);
      const at = served.url + path.replace(":model", HIDDEN);
      expect([hidden.status, (await fetch(at)).status]).toEqual([404, 200]);
      const inferring = await make({ scopes: ["infer"] });
      expect((await fetch(at, { headers: inferring.headers })).status).toBe(200);
      expect((await fetch(at, { headers: { authorization: "Bearer bt_wrong" } })).status).toBe(401);
      expect((await fetch(`${served.url}/v2/health/live`, { headers: { authorization: "Bearer no" } })).status).toBe(
        200,
      );
    },
  );

  it("is in no list", async () => {
    const listed = async (key: Key) => (await answerTo("/v2/repository/index", key, "POST")).text;
    expect(await listed(all)).toContain(HIDDEN);
    expect(await listed(some)).not.toContain(HIDDEN);
  });

  it("is no model for a schedule that goes on, nor for a job that is to run once more", async () => {
    const body = { generate: { text_input: "a", max_tokens: 2 } };
    const { id } = await made(served.url, HIDDEN, { every: 3_600_000, job: body }, all);
    const at = (verb: string) => `/v2/schedules/${id}/${verb}`;
    expect((await answerTo(at("pause"), some, "POST")).status).toBe(200);
    expect(await answerTo(at("resume"), some, "POST")).toMatchObject({
      status: 404,
      text: `{"error":"Request for unknown model: '${HIDDEN}' is not found","code":"unknown_model"}`,
    });
    expect((await answerTo(at("resume"), all, "POST")).status).toBe(200);

    const job = await accepted(served.url, HIDDEN, { ...body, delay: 2_000 }, all.headers);
    await setTenant("acme", { models: [ALLOWED] });
    expect(await ended(served.url, job.id, all.headers)).toMatchObject({ error: { code: "unknown_model" } });
    await setTenant("acme", { models: ["*"] });
    const retry = `/v2/jobs/${job.id}/retry`;
    expect(await answerTo(retry, some, "POST")).toMatchObject({ status: 404 });
    await expect.poll(async () => (await answerTo(retry, all, "POST")).status, { timeout: 5_000 }).toBe(202);
    await standing(served.url, job.id, ({ state }) => state === "completed", all.headers);
  });

  it.each([
    ["in the path of the batch", `/v2/models/${HIDDEN}/generate`, `/v2/models/${NEVER}/generate`],
    ["in the lines of the batch", "/v1/completions", "/v1/completions"],
  ])("is no model for a line, %s", async (_, endpoint, other) => {
    const about = async (path: string, model: string): Promise<string> => {
      const body = path === "/v1/completions" ? { model, prompt: "a", max_tokens: 2 } : { text_input: "a" };
      const { errors } = await batch(some, path, [{ custom_id: "a", method: "POST", url: path, body }]);
      const [line] = linesOf(errors);
      return JSON.stringify([line?.response?.status_code, line?.response?.body]).replaceAll(NEVER, HIDDEN);
    };
    const [hidden, never] = [await about(endpoint, HIDDEN), await about(other, NEVER)];
    expect(hidden).toBe(never);
    expect(hidden).toMatch(/^\[404,.*(?:unknown_model|model_not_found)/);
  });

  it("takes nothing from the lines of other models, nor after the key was revoked", async () => {
    const key = await make({ scopes, models: [ALLOWED] });
    const lines = Array.from({ length: 5 }, (_, i) => inferLine(i));
    const { counts } = await batch(key, "/v2/models/simple/infer", lines, () => fleet.keys.revoke(key.id));
    expect(counts).toEqual({ total: 5, completed: 5, failed: 0 });
  });
});

/** Runs a batch to its end. @param meanwhile called once the batch is made, before any line runs */
async function batch(
  key: Key,
  endpoint: string,
  lines: readonly object[],
  meanwhile?: () => Promise<unknown>,
): Promise<{ readonly errors: string; readonly counts: unknown }> {
  const parts = [
    { field: "purpose", text: "batch" },
    { field: "file", name: "a.jsonl", text: lines.map((line) => JSON.stringify(line)).join("\n") },
  ];
  const headers = { ...key.headers, "content-type": FORM_TYPE };
  const file = await ask(`${served.url}/v1/files`, { body: formOf(parts).toString(), headers });
  const order = { input_file_id: file.body.id, endpoint, completion_window: "24h" };
  const jobs = served.fleet.jobs[0];
  if (meanwhile !== undefined) await jobs?.kill();
  const { body, status, text } = await ask(`${served.url}/v1/batches`, { body: order, headers: key.headers });
  if (status !== 200) throw new Error(`the batch was answered ${status} ${text}`);
  if (meanwhile !== undefined) {
    await meanwhile();
    await jobs?.start();
  }
  const look = async () => (await ask(`${served.url}/v1/batches/${body.id}`, { headers: all.headers })).body;
  await expect.poll(async () => look(), { timeout: 20_000 }).toMatchObject({ status: "completed" });
  const { error_file_id: id, request_counts: counts } = (await look()) as unknown as {
    readonly error_file_id: string | null;
    readonly request_counts: unknown;
  };
  return { counts, errors: id === null ? "" : (await answerTo(`/v1/files/${id}/content`, all, "GET")).text };
}
