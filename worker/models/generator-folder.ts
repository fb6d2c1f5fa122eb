/**
 * Reads a generator: a Hugging Face folder with an ONNX export (of optimum or transformers.js). The
 * folder has config.json, tokenizer.json and onnx/model.onnx. generation_config.json,
 * tokenizer_config.json and chat_template.jinja are optional. This file checks these files; the
 * engine checks the graph.
 */
import { readdir } from "node:fs/promises";
import { z } from "zod";
import { tokenizerConfig, tokenizerJson, type TokenizerConfig, type TokenizerJson } from "../tokenizer/schema.js";
import {
  chooseTemplate,
  configFile,
  generationConfigFile,
  generationDefaults,
  templateField,
  textSettings,
  type GenerationDefaults,
} from "./generator-settings.js";
import { checkTree, readJson, readText, resolveInside } from "./inside.js";
import { LoadError } from "../thread/load-error.js";

const MIB = 2 ** 20;
const MAX_SETTINGS_BYTES = 16 * MIB;
const MAX_TOKENIZER_BYTES = 64 * MIB;
const MAX_TEMPLATE_BYTES = MIB;

/** The result of the reading; all paths are resolved. */
export interface GeneratorFolder {
  readonly name: string;
  readonly directory: string;
  readonly modelFile: string;
  readonly tokenizerFile: string;
  /**
   * Both are undefined if there is no such file. The second holds the tokenizer's part of the file.
   */
  readonly tokenizerConfigFile: string | undefined;
  readonly tokenizerConfig: TokenizerConfig | undefined;
  /** Undefined if the model has no template. The model then takes no chats. */
  readonly chatTemplate: string | undefined;
  /** Most tokens of prompt and output together. */
  readonly contextLength: number;
  readonly vocabSize: number;
  /** Token ids that end an answer; may be empty. */
  readonly eos: readonly number[];
  /** Token id that begins a prompt. */
  readonly bos: number | undefined;
  /** The sampling values for requests that set none. */
  readonly defaults: GenerationDefaults;
}

const tokenizerConfigFile = tokenizerConfig.extend({
  model_max_length: z.number().nullish(),
  chat_template: templateField,
});

/**
 * Whether a model directory without versions is meant to be a generator. Two of the three parts are
 * enough, so that the error can name the missing part.
 * @param entries names in the directory
 */
export function looksLikeGenerator(entries: readonly string[]): boolean {
  return ["config.json", "tokenizer.json", "onnx"].filter((part) => entries.includes(part)).length >= 2;
}

/** @param directory the resolved path @param name the model's name @throws LoadError */
export async function readGeneratorFolder(directory: string, name: string): Promise<GeneratorFolder> {
  const config = await required(directory, "config.json", configFile, MAX_SETTINGS_BYTES);
  const generation = await readJson(directory, "generation_config.json", generationConfigFile, MAX_SETTINGS_BYTES);
  const tokenizerSettings = await readJson(directory, "tokenizer_config.json", tokenizerConfigFile, MAX_SETTINGS_BYTES);
  const tokenizer = await required(directory, "tokenizer.json", tokenizerJson, MAX_TOKENIZER_BYTES);
  const template = await readText(directory, "chat_template.jinja", MAX_TEMPLATE_BYTES);
  const settings = textSettings(config, generation, tokenizerSettings?.model_max_length ?? undefined);
  const named = (token: string | undefined): number[] => idOf(tokenizer, token).filter((id) => id < settings.vocabSize);
  return {
    name,
    directory,
    modelFile: await findModel(directory),
    tokenizerFile: await fileOf(directory, "tokenizer.json"),
    tokenizerConfigFile: tokenizerSettings && (await fileOf(directory, "tokenizer_config.json")),
    tokenizerConfig: tokenizerSettings,
    chatTemplate: chooseTemplate(template, tokenizerSettings?.chat_template),
    contextLength: settings.contextLength,
    vocabSize: settings.vocabSize,
    eos: settings.eos ?? named(tokenizerSettings?.eos_token),
    bos: settings.bos ?? named(tokenizerSettings?.bos_token)[0],
    defaults: generationDefaults(generation),
  };
}

/** @throws LoadError also if the file does not exist */
async function required<T>(directory: string, name: string, schema: z.ZodType<T>, limit: number): Promise<T> {
  const value = await readJson(directory, name, schema, limit);
  if (value === undefined) throw new LoadError(`'${name}' does not exist`);
  return value;
}

async function findModel(directory: string): Promise<string> {
  const folder = await resolveInside(directory, "onnx");
  const chosen = chooseOnnxFile(folder?.directory === true ? await readdir(folder.path) : undefined);
  // All files need the check, because the model's external data may be in any of them.
  await checkTree(directory, "onnx");
  return fileOf(directory, chosen);
}

async function fileOf(directory: string, name: string): Promise<string> {
  const found = await resolveInside(directory, name);
  if (found === undefined) throw new LoadError(`'${name}' does not exist`);
  if (found.directory) throw new LoadError(`'${name}' is not a regular file`);
  return found.path;
}

/** @returns the id of a special token by its text, in a list; an empty list if there is none */
function idOf({ added_tokens, model }: TokenizerJson, token: string | undefined): number[] {
  if (token === undefined) return [];
  const added = added_tokens?.find(({ content }) => content === token)?.id;
  const known = Array.isArray(model.vocab) ? undefined : Object.entries(model.vocab).find(([text]) => text === token);
  const id = added ?? known?.[1];
  return typeof id === "number" ? [id] : [];
}

const FOLDER = "onnx";

/**
 * The names that exporters give to a decoder that takes and returns its cache. The second name is
 * from older versions of optimum.
 */
const names = ["model", "decoder_model_merged"];

/**
 * The best comes first: unquantised, half precision, eight bits, four bits. The suffixes are those
 * of transformers.js.
 */
const suffixes = ["", "_fp16", "_quantized", "_q8", "_int8", "_uint8", "_q4f16", "_q4", "_bnb4"];

const preferred = suffixes.flatMap((suffix) => names.map((name) => `${name}${suffix}.onnx`));

/**
 * Chooses one of a generator's ONNX files by name.
 * @param files names in the `onnx` folder; undefined if there is no such folder
 * @returns the chosen file's path in the model's directory
 * @throws LoadError if there is no suitable file
 */
export function chooseOnnxFile(files: readonly string[] | undefined): string {
  if (files === undefined) throw new LoadError(`there is no '${FOLDER}' folder`);
  const present = new Set(files);
  const others = files.filter((file) => /^(?:model|decoder_model_merged)[^/]*\.onnx$/.test(file)).sort();
  const chosen = preferred.find((file) => present.has(file)) ?? others[0];
  if (chosen !== undefined) return `${FOLDER}/${chosen}`;
  if (files.some((file) => /^decoder_(?:with_past_)?model.*\.onnx$/.test(file))) {
    throw new LoadError(
      `'${FOLDER}' holds a decoder in two files; export it as one, such as decoder_model_merged.onnx`,
    );
  }
  throw new LoadError(`'${FOLDER}' holds no ONNX file of a model, such as model.onnx`);
}
