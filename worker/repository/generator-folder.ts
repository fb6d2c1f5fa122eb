/**
 * Reads a Hugging Face folder with an ONNX export (optimum, transformers.js): config.json, tokenizer.json, onnx/model.onnx and, where they are there,
 * generation_config.json, tokenizer_config.json and chat_template.jinja. What the files say is checked here; what the graph says is the engine's.
 */
import { readdir } from "node:fs/promises";
import { z } from "zod";
import { tokenizerConfig, tokenizerJson, type TokenizerConfig, type TokenizerJson } from "../tokenizer/schema.js";
import { readJson, readText } from "./generator-json.js";
import { chooseOnnxFile } from "./generator-onnx.js";
import {
  configFile,
  generationConfigFile,
  generationDefaults,
  textSettings,
  type GenerationDefaults,
} from "./generator-settings.js";
import { chooseTemplate, templateField } from "./generator-template.js";
import { checkTree, resolveInside } from "./inside.js";
import { LoadError } from "./load-error.js";

const MIB = 2 ** 20;
const MAX_SETTINGS_BYTES = 16 * MIB;
const MAX_TOKENIZER_BYTES = 64 * MIB;
const MAX_TEMPLATE_BYTES = MIB;

export interface GeneratorFolder {
  readonly name: string;
  /** Resolved, as all files here. */
  readonly directory: string;
  readonly modelFile: string;
  readonly tokenizerFile: string;
  /** The file, and what is of worth to a tokenizer in it. */
  readonly tokenizerConfigFile: string | undefined;
  readonly tokenizerConfig: TokenizerConfig | undefined;
  readonly chatTemplate: string | undefined;
  /** Most tokens of prompt and output together. */
  readonly contextLength: number;
  readonly vocabSize: number;
  readonly eos: readonly number[];
  readonly bos: number | undefined;
  readonly defaults: GenerationDefaults;
}

const tokenizerConfigFile = tokenizerConfig.extend({
  model_max_length: z.number().nullish(),
  chat_template: templateField,
});

/** Whether a model directory without config.pbtxt and versions is one of these: two of its three parts are enough, so that it can be said what is missing. */
export function looksLikeGenerator(entries: readonly string[]): boolean {
  return ["config.json", "tokenizer.json", "onnx"].filter((part) => entries.includes(part)).length >= 2;
}

/** @param directory resolved. @throws LoadError */
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

async function required<T>(directory: string, name: string, schema: z.ZodType<T>, limit: number): Promise<T> {
  const value = await readJson(directory, name, schema, limit);
  if (value === undefined) throw new LoadError(`'${name}' does not exist`);
  return value;
}

async function findModel(directory: string): Promise<string> {
  const folder = await resolveInside(directory, "onnx");
  const chosen = chooseOnnxFile(folder?.directory === true ? await readdir(folder.path) : undefined);
  // Before the file itself: external data may be in any file beside it.
  await checkTree(directory, "onnx");
  return fileOf(directory, chosen);
}

async function fileOf(directory: string, name: string): Promise<string> {
  const found = await resolveInside(directory, name);
  if (found === undefined) throw new LoadError(`'${name}' does not exist`);
  if (found.directory) throw new LoadError(`'${name}' is not a regular file`);
  return found.path;
}

function idOf({ added_tokens, model }: TokenizerJson, token: string | undefined): number[] {
  if (token === undefined) return [];
  const added = added_tokens?.find(({ content }) => content === token)?.id;
  const known = Array.isArray(model.vocab) ? undefined : Object.entries(model.vocab).find(([text]) => text === token);
  const id = added ?? known?.[1];
  return typeof id === "number" ? [id] : [];
}
