/**
 * A whole fleet runs everything under the users of its roles. A command, a key or a subject that a
 * role lacks stands in the log of Redis or of NATS.
 */
import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, expect, it } from "vitest";
import { scopes } from "../../gateway/auth/owner/scopes.js";
import { made } from "../schedules/ask.js";
import { accepted, ask, ended, simpleBody } from "../jobs/ask.js";
import { ended as batchEnded, inferLine } from "../support/batches/batches.js";
import { refusalsOf } from "../support/brokers/redis-users.js";
import { Receiver, WebhookClient } from "../support/jobs/webhooks.js";
import { readCaptured, type Subscription } from "../support/streams/subscriber.js";
import { readUntil, until } from "../support/until.js";
import { useKeyedFleet, type Key } from "../auth/keyed.js";

const GENERATOR = "gen-mha";
const { served, make } = useKeyedFleet({
  models: ["simple", "accumulate", GENERATOR],
  workers: 2,
  jobs: 1,
  direct: true,
  guarded: true,
  env: { BATON_CAPTURE_TTL_MS: "600000" },
});

let key: Key;
let receiver: Receiver;
beforeAll(async () => {
  key = await make({ scopes });
  receiver = await Receiver.start();
});
afterAll(() => receiver.dispose());

const text = { text_input: "a lap", max_tokens: 120, temperature: 0 };
const asked = async (path: string, body?: object, method?: string) => {
  const manner = { ...(method !== undefined && { method }), ...(body !== undefined && { body }) };
  return (await ask(served.url + path, { ...manner, headers: key.headers })).body;
};
const step = (more: object) => ({
  parameters: { sequence_id: 7, ...more },
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [1] }],
});
/** Begins a stream without waiting for its end. @returns its id */
const begun = async () => {
  const { body } = await ask(`${served.url}/v2/models/${GENERATOR}/generate`, {
    body: text,
    headers: { ...key.headers, prefer: "respond-async" },
  });
  return body.id;
};
interface Ended {
  readonly outcome?: { readonly choices: readonly { readonly text: string }[] };
}
const answerOf = async (id: string): Promise<string> => {
  const read = async () => {
    const { outcome } = (await asked(`/v2/requests/${id}`)) as Ended;
    return outcome?.choices[0]?.text;
  };
  return (await readUntil(read, (text) => text !== undefined)) ?? "";
};

it("runs tensors, sequences and streams", async () => {
  expect(await asked("/v2/models/simple/infer", simpleBody(1))).toMatchObject({ outputs: [{ name: "OUTPUT0" }, {}] });
  await asked("/v2/models/accumulate/infer", step({ sequence_start: true }));
  const forked = await asked("/v2/models/accumulate/sequences/7/fork", { sequence_id: 8 });
  expect(forked.error).toBeUndefined();
  await asked("/v2/models/accumulate/sequences/8", undefined, "DELETE");
  await asked("/v2/models/accumulate/infer", step({ sequence_end: true }));
  const id = await begun();
  expect(await answerOf(id)).not.toBe("");
  const subscription = (await asked(`/v2/requests/${id}/subscription`, {})) as unknown as Subscription;
  const { texts } = await readCaptured(subscription);
  expect(texts.length).toBeGreaterThan(100);
});

it("goes on with streams of a worker that dies", async () => {
  const undisturbed = await answerOf(await begun());
  const ids = await Promise.all(Array.from({ length: 6 }, begun));
  const [first, second] = served.fleet.workers;
  await first?.kill();
  for (const id of ids) expect(await answerOf(id)).toBe(undisturbed);
  expect(second?.logged("streams taken over")).toBeGreaterThan(0);
  await first?.start();
  await served.fleet.whenServing();
});

it("runs jobs, schedules and webhooks", async () => {
  const hooks = new WebhookClient(served.url, key.headers);
  await hooks.ask("POST", "/webhooks", { url: receiver.url("/hook"), events: ["job.completed"] });
  const later = new Date(Date.now() + 300).toISOString();
  const job = await accepted(served.url, "simple", { infer: simpleBody(1), run_at: later }, key.headers);
  expect((await ended(served.url, job.id, key.headers)).state).toBe("completed");
  await until(() => receiver.at("/hook").length > 0);
  const schedule = await made(served.url, "simple", { every: 1_000, job: { infer: simpleBody(1) } }, key);
  await until(() => receiver.at("/hook").length > 1);
  await asked(`/v2/schedules/${schedule.id}`, undefined, "DELETE");
});

it("keeps files, and runs batches", async () => {
  const openai = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: key.text, maxRetries: 0 });
  const lines = Array.from({ length: 20 }, (_, i) => JSON.stringify(inferLine(i))).join("\n");
  const file = await openai.files.create({ file: await toFile(Buffer.from(lines), "lines.jsonl"), purpose: "batch" });
  const endpoint = "/v2/models/simple/infer" as "/v1/completions";
  const batch = await openai.batches.create({ input_file_id: file.id, endpoint, completion_window: "24h" });
  const { output_file_id: output } = await batchEnded(openai, batch.id);
  expect((await (await openai.files.content(output ?? "")).text()).split("\n").length).toBeGreaterThan(20);
  await openai.files.delete(file.id);
});

it("administers keys, and shows the fleet", async () => {
  const { id } = await asked("/v2/keys", { tenant: "acme", name: "other" });
  await asked(`/v2/keys/${id}`, undefined, "DELETE");
  for (const path of ["/v2/keys", "/v2/fleet", "/v2/dead", "/v2/jobs", "/v2/whoami"]) {
    expect((await asked(path)).error).toBeUndefined();
  }
});

it("stops in order", async () => {
  const { gateways, jobs, workers } = served.fleet;
  const ends = [...gateways.map(({ member }) => member), ...jobs, ...workers].map((member) => member.terminate());
  expect((await Promise.all(ends)).map(({ code }) => code)).toEqual([0, 0, 0, 0]);
});

it("was refused nothing by Redis and NATS", async () => {
  expect(await refusalsOf(served.redis)).toEqual([]);
  const said = served.fleet.nats.process.lines.map((line) => line.text);
  expect(said.filter((line) => /violation|error/i.test(line))).toEqual([]);
  const warned = [served.fleet.gateways[0]?.member, ...served.fleet.jobs, ...served.fleet.workers].flatMap(
    (member) => member?.process.lines.filter((line) => line.text.includes("may do everything")) ?? [],
  );
  expect(warned).toEqual([]);
});
