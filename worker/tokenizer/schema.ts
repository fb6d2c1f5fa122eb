/**
 * What is expected of a tokenizer.json and a tokenizer_config.json; what `@huggingface/tokenizers` alone reads passes as it is. Checked once, with the rest of a
 * generator's folder: the threads that read the tokenizer again import types from here and nothing else, since each would take 85 ms to load what checks them.
 */
import { z } from "zod";

const component = z.looseObject({ type: z.string() }).nullish();

const addedToken = z.looseObject({
  id: z.number().int().nonnegative(),
  content: z.string(),
  lstrip: z.boolean().optional(),
  rstrip: z.boolean().optional(),
  special: z.boolean().optional(),
  /** Matched after normalisation. */
  normalized: z.boolean().optional(),
});

export type AddedToken = z.infer<typeof addedToken>;

/** As it is in the file, without transformations: the threads have the file. */
export const tokenizerJson = z.looseObject({
  added_tokens: z.array(addedToken).nullish(),
  normalizer: component,
  pre_tokenizer: component,
  post_processor: component,
  decoder: component,
  model: z.looseObject({
    type: z.string().nullish(),
    /** Token to id, or (Unigram) pairs of token and score; looked through where it is used, as merges are, because there are hundreds of thousands. */
    vocab: z.custom<readonly unknown[] | Readonly<Record<string, unknown>>>(isObject, "expected a vocabulary"),
    /** Of BPE: pairs, or texts of two tokens and a space between them. */
    merges: z.custom<readonly unknown[]>(Array.isArray, "expected a list").nullish(),
    unk_token: z.string().nullish(),
    fuse_unk: z.boolean().nullish(),
    byte_fallback: z.boolean().nullish(),
    /** A word that is a token needs no merges. */
    ignore_merges: z.boolean().nullish(),
    continuing_subword_prefix: z.string().nullish(),
    end_of_word_suffix: z.string().nullish(),
  }),
});

export type TokenizerJson = z.infer<typeof tokenizerJson>;

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

/** A special token by itself, or with the flags of an added token. */
const tokenField = z
  .union([z.string(), z.looseObject({ content: z.string() })])
  .nullish()
  .transform((token) => (typeof token === "string" ? token : token?.content));

export const tokenizerConfig = z.object({
  bos_token: tokenField,
  eos_token: tokenField,
  unk_token: tokenField,
  pad_token: tokenField,
  sep_token: tokenField,
  cls_token: tokenField,
  mask_token: tokenField,
  additional_special_tokens: z.array(tokenField).nullish(),
  added_tokens_decoder: z.record(z.string(), z.object({ special: z.boolean().nullish() })).nullish(),
});

export type TokenizerConfig = z.infer<typeof tokenizerConfig>;
