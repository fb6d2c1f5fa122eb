/**
 * The settings of a generator from config.json, generation_config.json and tokenizer_config.json.
 * Names differ from architecture to architecture, and a null counts as absent.
 */
import { z } from "zod";
import type { ServedModel } from "#shared/contract/announcement.js";
import { LoadError } from "../thread/load-error.js";

export type GenerationDefaults = NonNullable<ServedModel["generator"]>["defaults"];

const count = z.number().int().positive().nullish();
const tokenIds = z
  .union([z.number().int(), z.array(z.number().int())])
  .nullish()
  .transform((ids) => (typeof ids === "number" ? [ids] : (ids ?? undefined)));

/**
 * The names that architectures give to the length of their position tables. If a file has several,
 * the smallest length counts.
 */
const lengths = {
  max_position_embeddings: count,
  n_positions: count,
  n_ctx: count,
  max_seq_len: count,
  max_seq_length: count,
  max_sequence_length: count,
  max_context_length: count,
  context_length: count,
  seq_length: count,
  seq_len: count,
} as const;

const textConfig = z.looseObject({
  ...lengths,
  vocab_size: count,
  eos_token_id: tokenIds,
  bos_token_id: tokenIds,
  is_encoder_decoder: z.boolean().nullish(),
});

/** Multimodal architectures nest the settings of their language model. */
export const configFile = textConfig.extend({
  text_config: textConfig.nullish(),
  llm_config: textConfig.nullish(),
  language_config: textConfig.nullish(),
});

export type ConfigFile = z.infer<typeof configFile>;

export const generationConfigFile = z.looseObject({
  eos_token_id: tokenIds,
  bos_token_id: tokenIds,
  temperature: z.number().nonnegative().nullish(),
  /** Some tools write -1 for "no limit". */
  top_k: z.number().int().gte(-1).nullish(),
  top_p: z.number().positive().lte(1).nullish(),
  min_p: z.number().nonnegative().lte(1).nullish(),
  repetition_penalty: z.number().positive().nullish(),
  max_new_tokens: count,
});

export type GenerationConfigFile = z.infer<typeof generationConfigFile>;

export interface TextSettings {
  readonly contextLength: number;
  readonly vocabSize: number;
  /** Token ids that end an answer; undefined if neither file has any. */
  readonly eos: readonly number[] | undefined;
  /** Token id that begins a prompt. */
  readonly bos: number | undefined;
}

/**
 * @param maxLength tokenizer_config's model_max_length, in which 10^30 stands for no limit
 * @throws LoadError if the size of the context or of the vocabulary is missing
 */
export function textSettings(
  config: ConfigFile,
  generation: GenerationConfigFile | undefined,
  maxLength: number | undefined,
): TextSettings {
  const levels = [config, config.text_config, config.llm_config, config.language_config];
  const first = <T>(pick: (level: z.infer<typeof textConfig>) => T | null | undefined): T | undefined => {
    for (const level of levels) {
      const found = level == null ? undefined : pick(level);
      if (found != null) return found;
    }
    return undefined;
  };
  if (config.is_encoder_decoder === true) throw new LoadError("encoder-decoder models cannot be served");
  const length = first((level) => leastLength(level));
  if (length === undefined) throw new LoadError("'config.json' has no context length, such as max_position_embeddings");
  const vocabSize = first((level) => level.vocab_size);
  if (vocabSize === undefined) throw new LoadError("'config.json' has no vocab_size");
  const inVocabulary = (id: number): boolean => id >= 0 && id < vocabSize;
  const eos = generation?.eos_token_id ?? first((level) => level.eos_token_id);
  const [bos] = generation?.bos_token_id ?? first((level) => level.bos_token_id) ?? [];
  return {
    contextLength: maxLength !== undefined && maxLength >= 1 ? Math.min(length, Math.floor(maxLength)) : length,
    vocabSize,
    // An id without a logit is never sampled, so it cannot end an answer.
    eos: eos?.filter(inVocabulary),
    bos: bos !== undefined && inVocabulary(bos) ? bos : undefined,
  };
}

function leastLength(level: z.infer<typeof textConfig>): number | undefined {
  const given = Object.keys(lengths).flatMap((name) => level[name as keyof typeof lengths] ?? []);
  return given.length === 0 ? undefined : Math.min(...given);
}

/** Takes the sampling defaults as vLLM does, even if do_sample is false. */
export function generationDefaults(generation: GenerationConfigFile | undefined): GenerationDefaults {
  const { temperature, top_k, top_p, min_p, repetition_penalty, max_new_tokens } = generation ?? {};
  return {
    ...(temperature != null && { temperature }),
    ...(top_k != null && { topK: Math.max(top_k, 0) }),
    ...(top_p != null && { topP: top_p }),
    ...(min_p != null && { minP: min_p }),
    ...(repetition_penalty != null && { repetitionPenalty: repetition_penalty }),
    ...(max_new_tokens != null && { maxTokens: max_new_tokens }),
  };
}

/** tokenizer_config.json has one chat template, or several with names. */
const namedTemplates = z.array(z.looseObject({ name: z.string(), template: z.string() }));

export const templateField = z.union([z.string(), namedTemplates]).nullish();

/**
 * Chooses the chat template.
 * @param file the text of chat_template.jinja, the place of newer tools; this text wins
 * @param field the field of tokenizer_config.json
 */
export function chooseTemplate(file: string | undefined, field: z.infer<typeof templateField>): string | undefined {
  if (file !== undefined) return file;
  if (field == null || typeof field === "string") return field ?? undefined;
  const only = field.length === 1 ? field[0]?.template : undefined;
  return field.find(({ name }) => name === "default")?.template ?? only;
}
