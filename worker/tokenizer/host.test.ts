import { rm } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import type { PromptSpec } from "#shared/contract/generation.js";
import { InferenceError } from "#shared/errors.js";
import { root } from "../../test/support/fleet/root.js";
import { byteLevel, writeTokenizer, type Json } from "../../test/fixtures/tokenizers.js";
import type * as Host from "./host.js";
import type { TokenizerOptions } from "./protocol.js";

// Loads the compiled host, because a thread can only start from a compiled file.
const built = pathToFileURL(join(root, "dist/worker/tokenizer/host.js")).href;
const { startTokenizer } = (await import(built)) as typeof Host;

/** Takes exponential time for a row of `l` without an `m` behind, as real expressions may. */
const slow = { type: "Split", pattern: { Regex: "(l+)+m|x" }, behavior: "Isolated", invert: false };

let host: Host.TokenizerHost | undefined;

afterEach(async () => {
  await host?.close();
  host = undefined;
});

const optionsOf = (json: Json | string, over: Partial<TokenizerOptions> = {}): TokenizerOptions => ({
  name: "tale",
  tokenizerFile: writeTokenizer(json),
  tokenizerConfig: undefined,
  chatTemplate: "{{ messages[0].content }}",
  vocabSize: 1_000,
  eos: [1],
  bos: 0,
  ...over,
});

const neverFatal = (reason: string): void => expect.unreachable(reason);
const tenant = { level: 1, tenant: "default", weight: 1 };
const text = (value: string): PromptSpec => ({ kind: "text", text: value });

async function refusalOf(answer: Promise<unknown>): Promise<string> {
  const error = await answer.then(
    () => "no refusal",
    (cause: unknown) => cause,
  );
  return error instanceof Error && "code" in error ? `${String(error.code)}: ${error.message}` : String(error);
}

describe("startTokenizer", () => {
  it("tokenises in a thread, each prompt in its turn", async () => {
    const started = await startTokenizer(optionsOf(byteLevel()), neverFatal);
    host = started;
    const answers = await Promise.all(
      ["the", " the", "the the"].map((word) => started.encode(tenant, text(word), undefined)),
    );
    expect(answers.map((tokens) => tokens.length)).toEqual([2, 2, 3]);
  });

  it("gives tenants turns by weight, and a tenant with long prompts does not hold up another", async () => {
    const started = await startTokenizer(optionsOf(byteLevel()), neverFatal);
    host = started;
    const answered: string[] = [];
    const ask = async (who: string, weight: number, bytes: number): Promise<void> => {
      await started.encode({ level: 1, tenant: who, weight }, text("x".repeat(bytes)), undefined);
      answered.push(who);
    };
    const light = Array.from({ length: 40 }, () => ask("light", 1, 8_192));
    const heavy = Array.from({ length: 120 }, () => ask("heavy", 3, 4_096));
    let asked = Infinity;
    const late = light[9]?.then(() => {
      asked = answered.length;
      return ask("late", 1, 10);
    });
    await Promise.all([...light, ...heavy, late]);
    // The first prompts find the thread idle.
    const part = answered.slice(2, 2 + 84).filter((who) => who !== "late");
    const bytes = (who: string, each: number) => each * part.filter((one) => one === who).length;
    expect(Math.abs((3 * bytes("light", 8_192)) / bytes("heavy", 4_096) - 1)).toBeLessThan(0.2);
    expect(answered.indexOf("late") - asked).toBeLessThan(8);
  });

  it("puts history before a turn", async () => {
    host = await startTokenizer(optionsOf(byteLevel()), neverFatal);
    const turn = [...(await host.encode(tenant, text("the"), undefined))].slice(1);
    expect([...(await host.encode(tenant, text("the"), Int32Array.of(0, 7)))]).toEqual([0, 7, ...turn]);
    expect([...(await host.encode(tenant, text("the"), new Int32Array()))]).toEqual([0, ...turn]);
  });

  it("refuses what the tokenizer refuses, what is too large and what nobody waits for", async () => {
    host = await startTokenizer(optionsOf(byteLevel(), { chatTemplate: undefined }), neverFatal);
    const chat: PromptSpec = { kind: "chat", messages: [{ role: "user", content: "x" }], addGenerationPrompt: true };
    expect(await refusalOf(host.encode(tenant, chat, undefined))).toBe(
      "invalid_argument: model 'tale' has no chat template",
    );
    const large = host.encode(tenant, text("x".repeat(2 ** 20 + 1)), undefined);
    await expect(large).rejects.toEqual(
      new InferenceError("invalid_argument", "the prompt is larger than 1048576 bytes"),
    );
    const open = refusalOf(host.encode(tenant, text("x"), undefined));
    await host.close();
    expect(await open).toBe("unavailable: the worker is stopping");
    expect(await refusalOf(host.encode(tenant, text("x"), undefined))).toBe("unavailable: the worker is stopping");
  });

  it.each<[what: string, options: TokenizerOptions, reason: string | RegExp]>([
    ["a tokenizer that is no JSON", optionsOf("{"), "tokenizer.json cannot be read"],
    [
      "a tokenizer of an unknown kind",
      optionsOf(byteLevel([], { model: { type: "Charm", vocab: {} } })),
      /'Charm' is not known/,
    ],
    ["a broken template", optionsOf(byteLevel(), { chatTemplate: "{% for %}" }), /^the chat template failed: /],
    [
      "a template that fails",
      optionsOf(byteLevel(), { chatTemplate: "{{ messages[0].a.b() }}" }),
      /^the chat template failed: /,
    ],
  ])("does not start with %s", async (_, options, reason) => {
    await expect(startTokenizer(options, neverFatal)).rejects.toThrow(reason);
  });

  it("does not wait for a tokenizer that never loads", async () => {
    const options = optionsOf(byteLevel(), {
      chatTemplate: "{% for i in range(10 ** 6) %}{% for j in range(10 ** 6) %}{% endfor %}{% endfor %}",
    });
    const limits = { encodeMs: 20_000, loadMs: 1_500 };
    await expect(startTokenizer(options, neverFatal, limits)).rejects.toThrow("the tokenizer takes too long to load");
  });
});

describe("a prompt that makes the tokenizer hang", () => {
  it("is refused, and the others go to a new thread", async () => {
    const limits = { encodeMs: 1_000, loadMs: 60_000 };
    host = await startTokenizer(optionsOf(byteLevel([], { pre_tokenizer: slow })), neverFatal, limits);
    const before = host.encode(tenant, text("ax"), undefined);
    const hanging = refusalOf(host.encode(tenant, text("l".repeat(60)), undefined));
    const after = host.encode(tenant, text("ax"), undefined);
    expect([...(await after)]).toEqual([...(await before)]);
    expect(await hanging).toBe("invalid_argument: the prompt takes too long to tokenise");
  });
});

describe("a tokenizer that cannot be read again", () => {
  it("is reported, and everyone who waits is refused", async () => {
    const limits = { encodeMs: 1_000, loadMs: 60_000 };
    const options = optionsOf(byteLevel([], { pre_tokenizer: slow }));
    let report: (reason: string) => void = () => undefined;
    const reported = new Promise<string>((resolve) => {
      report = resolve;
    });
    host = await startTokenizer(options, (reason) => report(reason), limits);
    await rm(options.tokenizerFile);
    const hanging = refusalOf(host.encode(tenant, text("l".repeat(60)), undefined));
    const waiting = refusalOf(host.encode(tenant, text("ax"), undefined));
    expect(await hanging).toBe("invalid_argument: the prompt takes too long to tokenise");
    expect(await waiting).toBe("unavailable: the tokenizer has failed");
    expect(await reported).toBe("the tokenizer could not be started again: tokenizer.json cannot be read");
    expect(await refusalOf(host.encode(tenant, text("ax"), undefined))).toBe("unavailable: the tokenizer has failed");
  });
});

describe("a megabyte without a space", () => {
  const mebi = 2 ** 20;

  it.each<[what: string, prompt: string]>([
    ["one letter", "a".repeat(mebi)],
    ["emoji chains", "👨‍👩‍👧‍👦".repeat(mebi / 32)],
    ["white space", " ".repeat(mebi)],
    ["accents in the wrong order", "x\u0315\u0300".repeat(mebi / 5)],
    ["more of them on one letter than there are", `x${"\u0315\u0300".repeat(mebi / 5)}`],
  ])("%s: ends within the watchdog's time", async (_, prompt) => {
    const doubling = Array.from({ length: 8 }, (__, i) => ["a".repeat(2 ** i), "a".repeat(2 ** i)]);
    const { vocab, merges, ...model } = byteLevel()["model"] as { vocab: Record<string, number>; merges: string[][] };
    for (const [left = "", right = ""] of doubling) vocab[left + right] = Object.keys(vocab).length;
    const json = byteLevel([], {
      normalizer: { type: "NFC" },
      model: { ...model, vocab, merges: [...merges, ...doubling] },
    });
    host = await startTokenizer(optionsOf(json), neverFatal);
    expect((await host.encode(tenant, text(prompt), undefined)).length).toBeGreaterThan(1_000);
  });
});
