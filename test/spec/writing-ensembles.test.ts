/**
 * An ensemble with a generator among its steps answers with the texts of the generator, for the
 * same sampling parameters.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { faultyWritingEnsembles, makeEnsembles, writingEnsembles } from "../fixtures/ensembles.js";
import { GrpcClient, parameters, type Message } from "../protocols/grpc/client.js";
import { makeRepository } from "../support/fleet/repository.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { input } from "./ask.js";

const repository = mkdtempSync(join(tmpdir(), "baton-writing-"));
afterAll(() => rmSync(repository, { recursive: true }));
const faulty = Object.fromEntries(Object.entries(faultyWritingEnsembles).map(([name, { config }]) => [name, config]));
makeRepository(repository, ["gen-cheap"]);
makeEnsembles(repository, { ...writingEnsembles, ...faulty });
const running = useFleet({
  repository,
  models: [],
  serving: ["gen-cheap", "passes", ...Object.keys(writingEnsembles)],
  gateways: 2,
  grpc: true,
  // Most steps of a test wait for a slot.
  workerEnv: { BATON_GENERATOR_SLOTS: "2" },
});

const opened: GrpcClient[] = [];
const client = (gateway = 0): GrpcClient =>
  (opened[gateway] ??= new GrpcClient(running.fleet.gateways[gateway]?.grpc ?? ""));
afterAll(() => opened.forEach((one) => one.close()));

type Given = Parameters<typeof parameters>[0];

function prompt(model: string, text: string, given: Given, id = ""): Message {
  const isAlone = model === "gen-cheap";
  return {
    model_name: model,
    id,
    inputs: [
      {
        name: isAlone ? "text_input" : "IN",
        datatype: "BYTES",
        shape: isAlone ? [1] : [1, 1],
        contents: { bytes_contents: [Buffer.from(text)] },
      },
    ],
    parameters: parameters(given),
  };
}

interface InferAnswer {
  readonly id: string;
  readonly outputs: readonly { readonly name: string; readonly shape: readonly string[] }[];
  readonly parameters: Readonly<Record<string, { readonly bool_param?: boolean; readonly int64_param?: string }>>;
  readonly raw_output_contents: readonly Buffer[];
}

const answerIn = (message: Message): InferAnswer => message["infer_response"] as InferAnswer;
const errorsIn = (messages: readonly Message[]) =>
  messages.map((message) => message["error_message"]).filter((text) => text !== "");

/** The elements of the only output, undefined for a message without one. */
function textsIn(message: Message): string[] | undefined {
  const [raw] = answerIn(message).raw_output_contents;
  if (raw === undefined) return undefined;
  const texts: string[] = [];
  for (let at = 0; at < raw.length;) {
    const end = at + 4 + raw.readUInt32LE(at);
    texts.push(raw.toString("utf8", at + 4, end));
    at = end;
  }
  return texts;
}

async function told(model: string, text: string, given: Given): Promise<(string[] | undefined)[]> {
  const stream = client().stream();
  stream.send(prompt(model, text, given));
  const messages = await stream.finish();
  expect(errorsIn(messages)).toEqual([]);
  return messages.map(textsIn);
}

async function events(path: string, body: object): Promise<Record<string, unknown>[]> {
  const response = await fetch(running.url + path, {
    method: "POST",
    headers: { accept: "text/event-stream" },
    body: JSON.stringify(body),
  });
  return [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(
    ([, data]) => JSON.parse(data ?? "") as Record<string, unknown>,
  );
}

const all = Object.keys(writingEnsembles);
const ways: readonly (readonly [string, Given, readonly string[]])[] = [
  ["the likeliest tokens", { max_tokens: 24, temperature: 0 }, all],
  ["drawn tokens", { max_tokens: 24, temperature: "1.3", top_p: "0.9", seed: 7 }, all],
  // Only a text of one choice fits the step behind.
  ["several choices", { max_tokens: 9, temperature: 1, seed: 11, n: 2 }, ["writes", "writes-inside"]],
  ["parameters in one text", { sampling_parameters: '{"max_tokens":"8","temperature":"0","ignore_eos":true}' }, all],
];

describe("an ensemble with a generator", () => {
  // First, because the statistics are some time behind the answers.
  it("counts its requests for the generator as well", async () => {
    const statistics = async (model: string) => {
      const response = await fetch(`${running.url}/v2/models/${model}/stats`);
      const { model_stats: all } = (await response.json()) as {
        readonly model_stats: readonly { readonly inference_stats: { readonly success: { readonly count: number } } }[];
      };
      return all[0]?.inference_stats.success.count ?? 0;
    };
    for (let i = 0; i < 3; i++) await told("writes", "once", { max_tokens: 3 });
    await expect.poll(() => statistics("gen-cheap")).toBe(3);
  });

  it.each(ways)("answers with the parts of the generator's text: %s", async (_, given, models) => {
    const alone = await told("gen-cheap", "once upon a time", given);
    expect(alone.length).toBeGreaterThan(1);
    for (const model of models) {
      expect(await told(model, "once upon a time", given)).toEqual(alone);
    }
  });

  it("keeps the order within each request, while many share two slots with the generator's own", async () => {
    const given = { max_tokens: 12, temperature: 1, seed: 5, ignore_eos: true };
    const texts = Array.from({ length: 12 }, (_, i) => `number ${i}`);
    const alone = new Map<string, (string[] | undefined)[]>();
    for (const text of texts) alone.set(text, await told("gen-cheap", text, given));
    const stream = client().stream();
    for (const text of texts) {
      stream.send(prompt("writes", text, { ...given, triton_enable_empty_final_response: true }, text));
      stream.send(prompt("gen-cheap", text, given, `alone ${text}`));
    }
    const messages = await stream.finish();
    expect(errorsIn(messages)).toEqual([]);
    for (const text of texts) {
      const own = messages.filter((message) => answerIn(message).id === text);
      expect(own.map(textsIn)).toEqual([...(alone.get(text) ?? []), undefined]);
      const finals = own.map((message) => answerIn(message).parameters["triton_final_response"]?.bool_param);
      expect(finals).toEqual([...own.slice(1).map(() => false), true]);
      expect(answerIn(own[0] ?? {}).outputs).toMatchObject([{ name: "OUT", shape: ["1", "1"] }]);
    }
  });

  it("sends events over HTTP, with lists among the parameters", async () => {
    const given = { max_tokens: 30, temperature: 0, stop: ["qq", "zz"], logit_bias: { "5": -100 } };
    const alone = await events("/v2/models/gen-cheap/generate_stream", { text_input: "a tale", ...given });
    const texts = alone.map(({ text_output: text }) => text);
    expect(texts.length).toBeGreaterThan(1);
    const flat = await events("/v2/models/writes/generate_stream", { IN: "a tale", ...given, stream: true });
    expect(flat.map(({ OUT: out }) => out)).toEqual(texts);
    const body = { inputs: [input("IN", "BYTES", [1, 1], ["a tale"])], parameters: { ...given, timeout: 60_000_000 } };
    const infer = await events("/v2/models/writes/infer", body);
    expect(infer.map(({ outputs }) => outputs)).toEqual(
      texts.map((text) => [{ name: "OUT", datatype: "BYTES", shape: [1, 1], data: [text] }]),
    );
  });

  it("draws the same tokens again for the same key, and goes on behind the last answer seen", async () => {
    const given = { max_tokens: 60, temperature: 1, ignore_eos: true, idempotency_key: "written-once" };
    const first = client(0).stream();
    first.send(prompt("writes", "again", given));
    const seen = [...(await first.received(4))].slice(0, 4);
    first.call.cancel();
    const last = Number(answerIn(seen[3] ?? {}).parameters["response_index"]?.int64_param);
    const second = client(1).stream();
    second.send(prompt("writes", "again", { ...given, resume_after: last }));
    const rest = await second.finish();
    const whole = client(1).stream();
    whole.send(prompt("writes", "again", given));
    const all = await whole.finish();
    expect(errorsIn([...rest, ...all])).toEqual([]);
    expect([...seen, ...rest].map(textsIn)).toEqual(all.map(textsIn));
    const other = await told("writes", "again", { max_tokens: 60, temperature: 1, ignore_eos: true });
    expect(other).not.toEqual(all.map(textsIn));
  });

  it.each([
    ["bogus", { bogus: 1 }, "Unrecognized request argument supplied: bogus"],
    ["logprobs", { logprobs: 3 }, "logprobs is not supported: leave it out"],
    ["stream", { stream: false }, "stream is not supported: leave it out or give true"],
    ["max_tokens", { max_tokens: 0 }, "max_tokens must be a whole number from 1 to 65536, got 0"],
  ])("refuses %s by name, as the generator does", async (_, given, error) => {
    const stream = client().stream();
    stream.send(prompt("writes", "once", given));
    expect(errorsIn(await stream.finish())).toEqual([error]);
    const response = await fetch(`${running.url}/v2/models/writes/generate_stream`, {
      method: "POST",
      body: JSON.stringify({ IN: "once", ...given }),
    });
    expect([response.status, await response.json()]).toEqual([400, expect.objectContaining({ error })]);
  });

  it.each([
    ["an empty text", "", "in ensemble 'writes', text_input must not be empty"],
    ["a text longer than the context", "ab ".repeat(70_000), /^in ensemble 'writes', This model's maximum context/],
  ])("ends with the generator's refusal of %s", async (_, text, error) => {
    const stream = client().stream();
    stream.send(prompt("writes", text, {}));
    const [message] = errorsIn(await stream.finish());
    expect(message).toEqual(typeof error === "string" ? error : expect.stringMatching(error));
  });

  it("stops generating when its client leaves", async () => {
    const streams = Array.from({ length: 6 }, () => client().stream());
    for (const stream of streams) {
      stream.send(prompt("writes", "on and on", { max_tokens: 60_000, temperature: 1, seed: 1, ignore_eos: true }));
    }
    await Promise.race(streams.map((stream) => stream.received(2)));
    for (const stream of streams) stream.call.cancel();
    const open = async () => {
      const answer = await fetch(`${running.url}/v2/models/writes/requests`);
      return ((await answer.json()) as { requests: unknown[] }).requests.length;
    };
    await expect.poll(open).toBe(0);
    // The slots are free again, for the generator's own requests, too.
    expect(await told("gen-cheap", "once", { max_tokens: 2, temperature: 0, ignore_eos: true })).not.toEqual([]);
    expect(await told("writes", "once", { max_tokens: 2, temperature: 0, ignore_eos: true })).not.toEqual([]);
  });

  it.each(Object.entries(faultyWritingEnsembles))("is not loaded as %s", async (name, { reason }) => {
    const index = await fetch(`${running.url}/v2/repository/index`, { method: "POST" });
    const listed = (await index.json()) as { readonly name: string; readonly state: string; readonly reason: string }[];
    expect(listed.find((one) => one.name === name)).toMatchObject({ state: "UNAVAILABLE", reason });
  });
});
