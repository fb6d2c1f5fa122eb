/**
 * The schemas of tokenizer.json and tokenizer_config.json. Fields that only
 * `@huggingface/tokenizers` reads pass unchecked. The main thread checks the files once, with the
 * rest of a generator's folder. The threads that read the files again import only types from here,
 * because loading zod would take each thread 85 ms.
 */
import { z } from "zod";

const component = z.looseObject({ type: z.string() }).nullish();

const addedToken = z.looseObject({
  id: z.number().int().nonnegative(),
  content: z.string(),
  lstrip: z.boolean().optional(),
  rstrip: z.boolean().optional(),
  special: z.boolean().optional(),
  /** Whether the search for the token comes after normalisation. */
  normalized: z.boolean().optional(),
});

export type AddedToken = z.infer<typeof addedToken>;

/** The schema transforms nothing, because the threads read the file as it is. */
export const tokenizerJson = z.looseObject({
  added_tokens: z.array(addedToken).nullish(),
  normalizer: component,
  pre_tokenizer: component,
  post_processor: component,
  decoder: component,
  model: z.looseObject({
    type: z.string().nullish(),
    /**
     * Token to id, or (Unigram) pairs of token and score. The schema checks no entries here and in
     * `merges`, because there are hundreds of thousands. The code that uses an entry checks it.
     */
    vocab: z.custom<readonly unknown[] | Readonly<Record<string, unknown>>>(isObject, "expected a vocabulary"),
    /** For BPE: pairs of tokens, or texts of two tokens with a space between them. */
    merges: z.custom<readonly unknown[]>(Array.isArray, "expected a list").nullish(),
    unk_token: z.string().nullish(),
    fuse_unk: z.boolean().nullish(),
    byte_fallback: z.boolean().nullish(),
    /** Whether a word that is a token stays whole, without merges. */
    ignore_merges: z.boolean().nullish(),
    continuing_subword_prefix: z.string().nullish(),
    end_of_word_suffix: z.string().nullish(),
  }),
});

export type TokenizerJson = z.infer<typeof tokenizerJson>;

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

/** A special token as its text, or as an object with the flags of an added token. */
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
