import { join } from "node:path";
import { describe as suite, expect, it } from "vitest";
import { tokenRecord, type SamplingSpec, type TokenRecord } from "#shared/contract/generation.js";
import { onCpu } from "../onnx/providers.js";
import { describe, openSession } from "../onnx/runtime.js";
import { makeTurns } from "../onnx/turns.js";
import { openDecoder, type Decoder } from "./decoder.js";
import { Engine, type EngineLimits } from "./engine.js";
import { bytesPerPosition } from "./kv.js";
import { layoutOf } from "./layout.js";
import type { NewGeneration, Step } from "./protocol.js";
import { greedy } from "../../test/fixtures/sampling.js";

const text = {
  decode: (tokens: readonly number[]) => tokens.map((token) => `<${token}>`).join(""),
  bytesOf: (token: number) => Buffer.from(`<${token}>`),
};

/** Twelve arbitrary tokens. */
const twelve: SamplingSpec = { ...greedy, seed: 7, ignoreEos: true, maxTokens: 12 };

async function openModel(name: string): Promise<Decoder> {
  const folder = join(import.meta.dirname, "../../test/fixtures/models", name, "onnx");
  const file =
    name === "gen-mqa-fp16" ? "model_fp16.onnx" : name === "gen-quantized" ? "model_quantized.onnx" : "model.onnx";
  const session = await openSession({
    modelFile: join(folder, file),
    placement: onCpu,
    turns: makeTurns(),
    intraOpThreads: 1,
    graphOptimization: "all",
  });
  return openDecoder(
    session,
    layoutOf({ inputs: describe(session.inputMetadata), outputs: describe(session.outputMetadata) }),
    320,
  );
}

function engineOf(decoder: Decoder, limits: Partial<EngineLimits> = {}): Engine {
  return new Engine(decoder, { text, eos: [], contextLength: 4096, kvBytes: 2 ** 30, prefillTokens: 32, ...limits });
}

function prompt(seed: number, length: number): Int32Array {
  return Int32Array.from({ length }, (_, i) => 10 + ((seed * 7919 + i * 104_729 + i * i * seed) % 300));
}

function request(key: string, tokens: Int32Array, sampling: Partial<SamplingSpec> = {}): NewGeneration {
  const spec = { ...twelve, ...sampling };
  const replayed = Array.from({ length: spec.choices }, () => ({ tokens: [] }));
  return { key, level: 1, tenant: "default", weight: 1, sampling: spec, prompt: tokens, next: 0, replayed };
}

/**
 * Iterates until no request is open.
 * @returns every request's records, and the order of their ends
 */
async function runAll(engine: Engine, most = 2_000) {
  const records = new Map<string, TokenRecord[]>();
  const ended: string[] = [];
  const failed: string[] = [];
  for (let i = 0; i < most; i++) {
    const iteration = await engine.iterate(undefined);
    for (const step of iteration.steps) {
      const own = records.get(step.key) ?? [];
      own.push(parse(step));
      records.set(step.key, own);
      if (step.final) ended.push(step.key);
    }
    failed.push(...iteration.failed.map(({ key }) => key));
    if (engine.open === 0) return { records, ended, failed, iterations: i + 1 };
  }
  throw new Error("the engine does not come to an end");
}

function parse({ record, index, final }: Step): TokenRecord {
  const parsed = tokenRecord.parse(JSON.parse(record));
  expect(parsed.index).toBe(index);
  expect(parsed.final ?? false).toBe(final);
  return parsed;
}

function tokensOf(records: readonly TokenRecord[] | undefined, choice = 0): number[] {
  return (records ?? []).flatMap(({ choices }) => choices.find(({ index }) => index === choice)?.tokens ?? []);
}

async function alone(decoder: Decoder, one: NewGeneration): Promise<number[]> {
  const engine = engineOf(decoder);
  engine.add(one);
  return tokensOf((await runAll(engine)).records.get(one.key));
}

suite.each([
  ["gen-mha", true],
  ["gen-gqa-nopos", true],
  ["gen-mqa-fp16", true],
  ["gen-relative", false],
  ["gen-logits-to-keep", true],
])("%s", (name, padding) => {
  it("says whether rows may be padded", async () => {
    expect((await openModel(name)).padding).toBe(padding);
  });

  it("answers the same alone and among others of other lengths, joining at other times", async () => {
    const decoder = await openModel(name);
    const requests = Array.from({ length: 9 }, (_, i) =>
      request(`r${i}`, prompt(i + 1, 3 + 17 * i), { maxTokens: 5 + 4 * i }),
    );
    const expected = await Promise.all(requests.map((one) => alone(decoder, one)));
    const engine = engineOf(decoder);
    const got = new Map<string, number[]>();
    let open = 1;
    for (let i = 0; open > 0; i++) {
      const next = requests[i];
      if (next !== undefined) engine.add(next);
      const iteration = await engine.iterate(undefined);
      for (const step of iteration.steps) {
        got.set(step.key, [...(got.get(step.key) ?? []), ...tokensOf([parse(step)])]);
      }
      open = engine.open + (i < requests.length ? 1 : 0);
    }
    expect(requests.map(({ key }) => got.get(key))).toEqual(expected);
  });

  it("goes on from a log as if nothing had happened, at every index", async () => {
    const decoder = await openModel(name);
    const whole = await alone(decoder, request("whole", prompt(3, 40), { temperature: 1, maxTokens: 20 }));
    expect(whole).toHaveLength(20);
    for (const cut of [1, 2, 7, 19]) {
      const engine = engineOf(decoder);
      const one = request("cut", prompt(3, 40), { temperature: 1, maxTokens: 20 });
      engine.add({ ...one, next: cut, replayed: [{ tokens: whole.slice(0, cut) }] });
      const { records } = await runAll(engine);
      expect(records.get("cut")?.[0]?.index).toBe(cut);
      expect(tokensOf(records.get("cut"))).toEqual(whole.slice(cut));
    }
  });
});

suite("the engine", () => {
  it("gives the choices of one request each their own draws, in step, and takes them over in step", async () => {
    const decoder = await openModel("gen-mha");
    const three = request("three", prompt(5, 20), { temperature: 1, choices: 3, maxTokens: 10 });
    const engine = engineOf(decoder);
    engine.add(three);
    const records = (await runAll(engine)).records.get("three") ?? [];
    expect(records.map(({ choices }) => choices.length)).toEqual(Array(10).fill(3));
    const whole = [0, 1, 2].map((choice) => tokensOf(records, choice));
    expect(new Set(whole.map(String)).size).toBe(3);
    expect(records.at(-1)?.usage).toEqual({ prompt_tokens: 20, completion_tokens: 30 });

    const other = engineOf(decoder);
    other.add({ ...three, next: 4, replayed: whole.map((tokens) => ({ tokens: tokens.slice(0, 4) })) });
    const rest = (await runAll(other)).records.get("three") ?? [];
    expect(rest).toEqual(records.slice(4));
  });

  it("finishes a short request that came behind eight long ones before them", async () => {
    const engine = engineOf(await openModel("gen-mha"));
    for (let i = 0; i < 8; i++) engine.add(request(`long${i}`, prompt(i + 1, 300), { maxTokens: 60 }));
    engine.add(request("short", prompt(99, 4), { maxTokens: 4 }));
    expect((await runAll(engine)).ended[0]).toBe("short");
  });

  it("computes a known prefix once", async () => {
    const decoder = await openModel("gen-mha");
    let computed = 0;
    const counting: Decoder = {
      ...decoder,
      forward: (input) => {
        computed += input.steps * input.lengths.length;
        return decoder.forward(input);
      },
    };
    const engine = engineOf(counting);
    engine.add(request("first", prompt(1, 200), { maxTokens: 5 }));
    const answer = tokensOf((await runAll(engine)).records.get("first"));
    const before = computed;
    const turn = Int32Array.from([...prompt(1, 200), ...answer, ...prompt(2, 10)]);
    engine.add(request("second", turn, { maxTokens: 5 }));
    const second = tokensOf((await runAll(engine)).records.get("second"));
    // The first answer's last token was never fed. So this token is computed with the ten new
    // tokens, then four tokens of the answer.
    expect(computed - before).toBe(1 + 10 + 4);
    expect(second).toEqual(await alone(decoder, request("alone", turn, { maxTokens: 5 })));
  });

  it("answers everybody, and alike, with memory for a third of them", async () => {
    const decoder = await openModel("gen-mha");
    const requests = Array.from({ length: 9 }, (_, i) => request(`r${i}`, prompt(i + 1, 50), { maxTokens: 40 }));
    const expected = await Promise.all(requests.map((one) => alone(decoder, one)));
    const kvBytes = 3 * 90 * bytesPerPosition(decoder.kv);
    const engine = engineOf(decoder, { kvBytes });
    for (const one of requests) engine.add(one);
    const { records, ended } = await runAll(engine);
    expect(requests.map(({ key }) => tokensOf(records.get(key)))).toEqual(expected);
    expect(ended[0]).toBe("r0");
  });

  it("computes a suspect alone however much memory the others hold", async () => {
    const decoder = await openModel("gen-mha");
    const engine = engineOf(decoder, { kvBytes: 100 * bytesPerPosition(decoder.kv) });
    engine.add(request("big", prompt(1, 80), { maxTokens: 15 }));
    while ((await engine.iterate(undefined)).steps.length === 0);
    engine.add(request("suspect", prompt(2, 60)));
    const keys: string[] = [];
    for (let i = 0; i < 10 && keys.length === 0; i++) {
      keys.push(...(await engine.iterate("suspect")).steps.map(({ key }) => key));
    }
    expect(keys).toEqual(["suspect"]);
  });

  it("takes over choices that together need more than the memory that is left", async () => {
    const decoder = await openModel("gen-mha");
    const four = request("four", prompt(5, 20), { temperature: 1, choices: 4, maxTokens: 40 });
    const first = engineOf(decoder);
    first.add(four);
    const records = (await runAll(first)).records.get("four") ?? [];
    const replayed = [0, 1, 2, 3].map((choice) => ({ tokens: tokensOf(records, choice).slice(0, 30) }));
    const engine = engineOf(decoder, { kvBytes: 4 * 60 * 0.9 * bytesPerPosition(decoder.kv) });
    engine.add(request("neighbour", prompt(8, 10)));
    engine.add({ ...four, next: 30, replayed });
    expect((await runAll(engine)).records.get("four")).toEqual(records.slice(30));
  });

  it("serves a request that is larger than its memory when it is alone", async () => {
    const decoder = await openModel("gen-mha");
    const engine = engineOf(decoder, { kvBytes: 10 * bytesPerPosition(decoder.kv) });
    engine.add(request("big", prompt(1, 60)));
    engine.add(request("other", prompt(2, 60)));
    const { records } = await runAll(engine);
    expect(tokensOf(records.get("big"))).toHaveLength(12);
    expect(tokensOf(records.get("other"))).toHaveLength(12);
  });

  it("fails the request that the model refuses and no other", async () => {
    const decoder = await openModel("gen-mha");
    const good = request("good", prompt(1, 10));
    const expected = await alone(decoder, good);
    const engine = engineOf(decoder);
    engine.add(good);
    engine.add(request("bad", Int32Array.of(5, 100_000, 6)));
    const { records, failed } = await runAll(engine);
    expect(failed).toEqual(["bad"]);
    expect(tokensOf(records.get("good"))).toEqual(expected);
  });

  it("takes a request that fails in the midst of a batch out of it", async () => {
    const decoder = await openModel("gen-mha");
    const requests = ["a", "b", "c"].map((key, i) => request(key, prompt(i + 1, 20)));
    const expected = await Promise.all(requests.map((one) => alone(decoder, one)));
    const broken: Decoder = {
      ...decoder,
      // The fault follows the row with the longest past.
      forward: (input) =>
        input.steps === 1 && input.lengths.some((length) => length >= 60)
          ? Promise.reject(new Error("no more"))
          : decoder.forward(input),
    };
    const engine = engineOf(broken);
    for (const one of requests) engine.add(one);
    engine.add(request("guilty", prompt(9, 55), { maxTokens: 30 }));
    const { records, failed } = await runAll(engine);
    expect(failed).toEqual(["guilty"]);
    expect(requests.map(({ key }) => tokensOf(records.get(key)))).toEqual(expected);
  });

  it("forgets what is removed, and computes only one when told so", async () => {
    const engine = engineOf(await openModel("gen-mha"));
    engine.add(request("a", prompt(1, 5)));
    engine.add(request("b", prompt(2, 5)));
    const first = await engine.iterate("b");
    expect(first.steps.map(({ key }) => key)).toEqual(["b"]);
    engine.remove("a");
    const { records } = await runAll(engine);
    expect([...records.keys()]).toEqual(["b"]);
  });

  it("holds nothing once everything has left", async () => {
    const engine = engineOf(await openModel("gen-mha"));
    for (let i = 0; i < 5; i++) engine.add(request(`r${i}`, prompt(i, 20)));
    await engine.iterate(undefined);
    for (let i = 0; i < 5; i++) engine.remove(`r${i}`);
    await engine.iterate(undefined);
    expect(engine.open).toBe(0);
    expect(engine.activeBytes).toBe(0);
  });
});

suite("tenants with prompts that wait", () => {
  const asks = (tenant: string, weight: number, length: number, count: number): NewGeneration[] =>
    Array.from({ length: count }, (_, i) => {
      const tokens = prompt(weight * 100 + i, length);
      return { ...request(`${tenant}${i}`, tokens, { maxTokens: 1 }), tenant, weight };
    });

  it.each([
    ["of the same length", [80, 100], [80, 100]],
    ["that are longer than another's", [200, 40], [25, 300]],
    ["that are shorter than another's", [25, 120], [200, 40]],
  ] as const)("%s share the prompt tokens of iterations by weight", async (_, [light, lights], [heavy, heavies]) => {
    const engine = engineOf(await openModel("gen-mha"));
    // The tenant with the smaller share comes first.
    for (const one of asks("light", 1, light, lights)) engine.add(one);
    for (const one of asks("heavy", 3, heavy, heavies)) engine.add(one);
    const computed = { light: 0, heavy: 0 };
    while (computed.heavy < 6_000) {
      const { steps } = await engine.iterate(undefined);
      for (const { key } of steps) {
        if (key.startsWith("light")) computed.light += light;
        else computed.heavy += heavy;
      }
    }
    // Of each tenant, two prompts at most are not complete and do not count yet.
    expect(computed.light).toBeGreaterThan(0.95 * 2_000 - 2 * light);
    expect(computed.light).toBeLessThan(1.05 * (2_000 + (2 * heavy) / 3));
  });

  it("are told apart in the time that each took", async () => {
    const engine = engineOf(await openModel("gen-mha"));
    for (const one of asks("early", 1, 2_000, 1)) engine.add(one);
    const { steps, prefilled } = await engine.iterate(undefined);
    expect([steps, prefilled.map(({ key }) => key)]).toEqual([[], ["early0"]]);
    expect(prefilled[0]?.ms).toBeGreaterThan(0);
  });

  it("find that a tenant that comes late has its next turn", async () => {
    const engine = engineOf(await openModel("gen-mha"));
    for (const one of asks("early", 1, 2_000, 2)) engine.add(one);
    for (let i = 0; i < 20; i++) await engine.iterate(undefined);
    // More than the half of the budget that the oldest request leaves.
    for (const one of asks("late", 1, 30, 1)) engine.add(one);
    const iteration = await engine.iterate(undefined);
    expect(iteration.steps.map(({ key }) => key)).toContain("late0");
  });
});
