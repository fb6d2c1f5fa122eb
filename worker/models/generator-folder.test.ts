import { link, mkdir, mkdtemp, readFile, realpath, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { root as checkout } from "../../test/support/fleet/root.js";
import { looksLikeGenerator, readGeneratorFolder, type GeneratorFolder } from "./generator-folder.js";
import { LoadError } from "../thread/load-error.js";

let root: string;
let directory: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "baton-generator-"));
  directory = join(root, "tale");
});

afterEach(async () => {
  await rm(root, { recursive: true });
});

const config = { model_type: "llama", max_position_embeddings: 2048, vocab_size: 12, eos_token_id: 2, bos_token_id: 1 };
const tokenizer = {
  added_tokens: [{ id: 2, content: "</s>", special: true }],
  model: { type: "BPE", vocab: { a: 0, "<s>": 1 }, merges: [] },
};

type Files = Readonly<Record<string, unknown>>;

const whole: Files = {
  "config.json": config,
  "generation_config.json": { eos_token_id: [2, 7], temperature: 0.6, top_k: 20 },
  "tokenizer.json": tokenizer,
  "tokenizer_config.json": { chat_template: "{{ messages[0].content }}", model_max_length: 1024 },
  "onnx/model.onnx": "weights",
};

/** Writes objects as JSON. An undefined value leaves a file of the whole folder out. */
async function given(files: Files, base: Files = whole): Promise<void> {
  for (const [path, content] of Object.entries({ ...base, ...files })) {
    if (content === undefined) continue;
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), typeof content === "string" ? content : JSON.stringify(content));
  }
}

async function read(files: Files = {}): Promise<GeneratorFolder> {
  await given(files);
  return readGeneratorFolder(directory, "tale");
}

async function refusal(files: Files): Promise<string> {
  const error = await read(files).then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (!(error instanceof LoadError)) throw new Error("no LoadError", { cause: error });
  return error.message;
}

describe("readGeneratorFolder", () => {
  it("reads a whole folder", async () => {
    expect(await read()).toEqual({
      name: "tale",
      directory,
      modelFile: join(directory, "onnx/model.onnx"),
      tokenizerFile: join(directory, "tokenizer.json"),
      tokenizerConfigFile: join(directory, "tokenizer_config.json"),
      tokenizerConfig: { chat_template: "{{ messages[0].content }}", model_max_length: 1024 },
      chatTemplate: "{{ messages[0].content }}",
      contextLength: 1024,
      vocabSize: 12,
      eos: [2, 7],
      bos: 1,
      defaults: { temperature: 0.6, topK: 20 },
    });
  });

  it("needs neither generation_config.json nor tokenizer_config.json", async () => {
    const found = await read({ "generation_config.json": undefined, "tokenizer_config.json": undefined });
    expect(found).toMatchObject({ contextLength: 2048, eos: [2], bos: 1, defaults: {} });
    expect([found.tokenizerConfigFile, found.chatTemplate]).toEqual([undefined, undefined]);
  });

  it.each<[what: string, config: Files, length: number]>([
    ["GPT-2", { n_positions: 1024, n_ctx: 1024, vocab_size: 9 }, 1024],
    ["MPT", { max_seq_len: 512, vocab_size: 9 }, 512],
    ["several", { max_position_embeddings: 4096, seq_length: 600, vocab_size: 9 }, 600],
    ["nested", { text_config: { max_position_embeddings: 700, vocab_size: 9 } }, 700],
    ["nested, with nulls outside", { max_position_embeddings: null, text_config: { n_ctx: 8, vocab_size: 9 } }, 8],
  ])("finds the context length of %s", async (_, config, length) => {
    expect((await read({ "config.json": config })).contextLength).toBe(length);
  });

  it.each([
    [1e30, 2048],
    [512.0, 512],
    [null, 2048],
    [0, 2048],
  ])("takes a tokenizer's limit of %s for %s", async (limit, length) => {
    expect((await read({ "tokenizer_config.json": { model_max_length: limit } })).contextLength).toBe(length);
  });

  it.each<[what: string, files: Files, eos: number[]]>([
    ["generation_config.json", { "generation_config.json": { eos_token_id: 3 } }, [3]],
    ["config.json", { "generation_config.json": { eos_token_id: null } }, [2]],
    [
      "a nested config",
      { "generation_config.json": {}, "config.json": { text_config: { ...config, eos_token_id: [4, 5] } } },
      [4, 5],
    ],
    [
      "tokenizer_config.json",
      {
        "generation_config.json": {},
        "config.json": { ...config, eos_token_id: undefined },
        "tokenizer_config.json": { eos_token: { content: "</s>" } },
      },
      [2],
    ],
    ["nowhere", { "generation_config.json": {}, "config.json": { ...config, eos_token_id: null } }, []],
    ["ids that the model cannot sample", { "generation_config.json": { eos_token_id: [-1, 2, 12] } }, [2]],
  ])("takes the end tokens from %s", async (_, files, eos) => {
    expect((await read(files)).eos).toEqual(eos);
  });

  it("takes the first token's id from its text where no id is given", async () => {
    const files = { "config.json": { ...config, bos_token_id: null }, "tokenizer_config.json": { bos_token: "<s>" } };
    expect((await read(files)).bos).toBe(1);
  });

  it("takes defaults as vLLM does, sampling or not", async () => {
    const generation = {
      do_sample: false,
      temperature: 0,
      top_k: -1,
      top_p: 0.9,
      min_p: 0.05,
      repetition_penalty: 1.1,
      max_new_tokens: 64,
      max_length: 20,
    };
    const expected = { temperature: 0, topK: 0, topP: 0.9, minP: 0.05, repetitionPenalty: 1.1, maxTokens: 64 };
    expect((await read({ "generation_config.json": generation })).defaults).toEqual(expected);
    expect((await read({ "generation_config.json": { temperature: null, top_p: null } })).defaults).toEqual({});
  });

  it.each<[what: string, files: Files, chat: string | undefined]>([
    ["a file", { "chat_template.jinja": "from a file" }, "from a file"],
    ["no field", { "tokenizer_config.json": {} }, undefined],
    [
      "a list",
      {
        "tokenizer_config.json": {
          chat_template: [
            { name: "tool_use", template: "T" },
            { name: "default", template: "D" },
          ],
        },
      },
      "D",
    ],
    ["a list of one", { "tokenizer_config.json": { chat_template: [{ name: "x", template: "X" }] } }, "X"],
  ])("takes the chat template from %s", async (_, files, chat) => {
    expect((await read(files)).chatTemplate).toBe(chat);
  });

  it.each([
    [["model_q4.onnx", "model_fp16.onnx", "model.onnx", "model.onnx_data"], "model.onnx"],
    [["model_q4.onnx", "model_quantized.onnx", "model_fp16.onnx"], "model_fp16.onnx"],
    [["model_q4f16.onnx", "model_int8.onnx", "model_bnb4.onnx"], "model_int8.onnx"],
    [["decoder_model_merged_quantized.onnx", "decoder_model.onnx"], "decoder_model_merged_quantized.onnx"],
    [["model_q2.onnx", "vision_encoder.onnx"], "model_q2.onnx"],
  ])("of %s chooses %s", async (files, chosen) => {
    const onnx = Object.fromEntries(files.map((file) => [`onnx/${file}`, "x"]));
    expect((await read({ "onnx/model.onnx": undefined, ...onnx })).modelFile).toBe(join(directory, "onnx", chosen));
  });

  it.each<[what: string, files: Files, error: string]>([
    ["no config.json", { "config.json": undefined }, "'config.json' does not exist"],
    ["no tokenizer.json", { "tokenizer.json": undefined }, "'tokenizer.json' does not exist"],
    ["no onnx folder", { "onnx/model.onnx": undefined }, "there is no 'onnx' folder"],
    ["a file for the folder", { "onnx/model.onnx": undefined, onnx: "x" }, "there is no 'onnx' folder"],
    [
      "no ONNX file",
      { "onnx/model.onnx": undefined, "onnx/README": "x" },
      "'onnx' holds no ONNX file of a model, such as model.onnx",
    ],
    [
      "a split decoder",
      { "onnx/model.onnx": undefined, "onnx/decoder_model.onnx": "x", "onnx/decoder_with_past_model.onnx": "x" },
      "'onnx' holds a decoder in two files; export it as one, such as decoder_model_merged.onnx",
    ],
    [
      "a folder for the ONNX file",
      { "onnx/model.onnx": undefined, "onnx/model.onnx/x": "x" },
      "'onnx/model.onnx' is not a regular file",
    ],
    ["config.json cut off", { "config.json": '{"max_position' }, "'config.json' is not JSON"],
    ["an empty tokenizer.json", { "tokenizer.json": "" }, "'tokenizer.json' is not JSON"],
    ["a list for config.json", { "config.json": [] }, "'config.json': invalid input: expected object, received array"],
    [
      "no context length",
      { "config.json": { vocab_size: 5 } },
      "'config.json' has no context length, such as max_position_embeddings",
    ],
    ["no vocabulary size", { "config.json": { n_ctx: 5 } }, "'config.json' has no vocab_size"],
    [
      "a text for a number",
      { "config.json": { ...config, max_position_embeddings: "2048" } },
      "'config.json': max_position_embeddings: invalid input: expected number, received string",
    ],
    [
      "an encoder-decoder",
      { "config.json": { ...config, is_encoder_decoder: true } },
      "encoder-decoder models cannot be served",
    ],
    [
      "a default out of range",
      { "generation_config.json": { top_p: 1.5 } },
      "'generation_config.json': top_p: too big: expected number to be <=1",
    ],
    [
      "a tokenizer without a model",
      { "tokenizer.json": { added_tokens: [] } },
      "'tokenizer.json': model: invalid input: expected object, received undefined",
    ],
    [
      "a vocabulary of one",
      { "tokenizer.json": { model: { vocab: "a" } } },
      "'tokenizer.json': model.vocab: expected a vocabulary",
    ],
    [
      "a text for merges",
      { "tokenizer.json": { model: { vocab: {}, merges: "a b" } } },
      "'tokenizer.json': model.merges: expected a list",
    ],
    [
      "a normaliser of no type",
      { "tokenizer.json": { ...tokenizer, normalizer: {} } },
      "'tokenizer.json': normalizer.type: invalid input: expected string, received undefined",
    ],
    [
      "an added token without an id",
      { "tokenizer.json": { ...tokenizer, added_tokens: [{ content: "a" }] } },
      "'tokenizer.json': added_tokens.0.id: invalid input: expected number, received undefined",
    ],
    [
      "a number for a special token",
      { "tokenizer_config.json": { pad_token: 5 } },
      "'tokenizer_config.json': pad_token: invalid input",
    ],
    [
      "a number for a template",
      { "tokenizer_config.json": { chat_template: 5 } },
      "'tokenizer_config.json': chat_template: invalid input",
    ],
  ])("refuses %s", async (_, files, error) => {
    expect(await refusal(files)).toBe(error);
  });

  it("refuses text that is not UTF-8", async () => {
    await given({});
    await writeFile(join(directory, "chat_template.jinja"), Buffer.from([0xff, 0xfe]));
    await expect(readGeneratorFolder(directory, "tale")).rejects.toThrow("'chat_template.jinja' is not UTF-8");
  });

  it("refuses a tokenizer.json of more than 64 MiB without reading it", async () => {
    await given({});
    await truncate(join(directory, "tokenizer.json"), 64 * 2 ** 20 + 1);
    await expect(readGeneratorFolder(directory, "tale")).rejects.toThrow(
      "'tokenizer.json' is larger than 67108864 bytes",
    );
  });

  it.each([
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "onnx",
    "onnx/model.onnx_data",
  ])("follows no link out of the folder: %s", async (name) => {
    await given({});
    await writeFile(join(root, "elsewhere"), "{}");
    await rm(join(directory, name), { recursive: true, force: true });
    await symlink("/etc", join(root, "folder"));
    await symlink(name === "onnx" ? "/etc" : join(root, "elsewhere"), join(directory, name));
    await expect(readGeneratorFolder(directory, "tale")).rejects.toThrow(
      `'${name}' leads out of the directory it is in`,
    );
  });

  it("takes no second name of somebody's file for external data", async () => {
    await given({ "onnx/model.onnx_data": "x" });
    await link(join(directory, "onnx/model.onnx_data"), join(root, "other"));
    await expect(readGeneratorFolder(directory, "tale")).rejects.toThrow("'onnx/model.onnx_data' has 2 hard links");
  });

  it("answers any content with a folder or a sentence that names no path", async () => {
    await given({});
    const names = ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"];
    const values: unknown[] = [
      null,
      true,
      -1,
      1e308,
      "x",
      [],
      [null],
      {},
      { model: { vocab: 5 } },
      { text_config: [] },
    ];
    for (const name of names) {
      const original = await readFile(join(directory, name), "utf8");
      const cuts = Array.from({ length: 12 }, (_, i) => original.slice(0, Math.floor((original.length * i) / 12)));
      const swapped = Object.keys(JSON.parse(original) as object).flatMap((key) =>
        values.map((value) => JSON.stringify({ ...(JSON.parse(original) as object), [key]: value })),
      );
      for (const text of [...cuts, ...swapped, ...values.map((value) => JSON.stringify(value))]) {
        await writeFile(join(directory, name), text);
        const error = await readGeneratorFolder(directory, "tale").then(
          () => undefined,
          (cause: unknown) => cause,
        );
        if (error === undefined) continue;
        expect(error, `${name}: ${text}`).toBeInstanceOf(LoadError);
        expect((error as LoadError).message, text).not.toContain(root);
      }
      await writeFile(join(directory, name), original);
    }
  });
});

describe("the generators of this repository", () => {
  it.each<[folder: string, file: string, length: number, eos: number[]]>([
    ["test/fixtures/models/gen-mha", "model.onnx", 4096, [1]],
    ["test/fixtures/models/gen-mqa-fp16", "model_fp16.onnx", 4096, [1]],
    ["test/fixtures/models/gen-quantized", "model_quantized.onnx", 4096, [1]],
    ["infra/models/tale-gpt", "model.onnx", 512, [2, 6]],
  ])("are read: %s", async (folder, file, length, eos) => {
    const found = await readGeneratorFolder(await realpath(join(checkout, folder)), "x");
    expect([basename(found.modelFile), found.contextLength, found.eos]).toEqual([file, length, eos]);
  });
});

describe("looksLikeGenerator", () => {
  it.each<[entries: string[], answer: boolean]>([
    [["config.json", "tokenizer.json", "onnx"], true],
    [["config.json", "onnx"], true],
    [["tokenizer.json", "onnx"], true],
    [["config.json", "README.md"], false],
    [[], false],
  ])("%s: %s", (entries, answer) => {
    expect(looksLikeGenerator(entries)).toBe(answer);
  });
});
