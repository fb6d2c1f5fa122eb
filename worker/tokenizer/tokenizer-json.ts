/** The parts of a tokenizer.json that are read here; what `@huggingface/tokenizers` alone reads passes as it is. */
import { readFileSync } from "node:fs";
import { z } from "zod";

const component = z.looseObject({ type: z.string() }).nullish();

const addedToken = z.looseObject({
  id: z.number().int().nonnegative(),
  content: z.string(),
  lstrip: z.boolean().default(false),
  rstrip: z.boolean().default(false),
  special: z.boolean().default(false),
  /** Matched after normalisation. */
  normalized: z.boolean().optional(),
});

export type AddedToken = z.infer<typeof addedToken>;

export function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

export const tokenizerJson = z.looseObject({
  added_tokens: z.array(addedToken).nullish(),
  normalizer: component,
  pre_tokenizer: component,
  post_processor: component,
  decoder: component,
  model: z.looseObject({
    type: z.string().nullish(),
    /** Token to id, or (Unigram) pairs of token and score; looked through where it is used, because there are hundreds of thousands. */
    vocab: z.custom<readonly unknown[] | Readonly<Record<string, unknown>>>(isObject, "expected a vocabulary"),
  }),
});

export type TokenizerJson = z.infer<typeof tokenizerJson>;

/** A special token by itself, or with the flags of an added token. */
const tokenField = z
  .union([z.string(), z.looseObject({ content: z.string() })])
  .nullish()
  .transform((token) => (typeof token === "string" ? token : token?.content));

export const tokenizerConfig = z.looseObject({
  bos_token: tokenField,
  eos_token: tokenField,
  unk_token: tokenField,
  pad_token: tokenField,
  sep_token: tokenField,
  cls_token: tokenField,
  mask_token: tokenField,
  additional_special_tokens: z.array(tokenField).nullish(),
  added_tokens_decoder: z.record(z.string(), z.looseObject({ special: z.boolean().nullish() })).nullish(),
});

export type TokenizerConfig = z.infer<typeof tokenizerConfig>;

/** @throws Error with a sentence for the operator; it names no path. */
export function readTokenizerJson(file: string): TokenizerJson {
  return read("tokenizer.json", file, tokenizerJson);
}

/** @throws Error with a sentence for the operator; it names no path. */
export function readTokenizerConfig(file: string | undefined): TokenizerConfig | undefined {
  return file === undefined ? undefined : read("tokenizer_config.json", file, tokenizerConfig);
}

function read<T>(name: string, file: string, schema: z.ZodType<T>): T {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(readFileSync(file)));
  } catch (cause) {
    throw new Error(`${name} cannot be read`, { cause });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Error(`${name}: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? "not what was expected"}`);
}

/** Texts by id, added tokens included; ids may be missing. */
export function textsOf({ model: { vocab }, added_tokens }: TokenizerJson): string[] {
  const texts: string[] = [];
  for (const [text, id] of entriesOf(vocab)) texts[id] = text;
  for (const { id, content } of added_tokens ?? []) texts[id] = content;
  return texts;
}

/** @throws Error where the vocabulary holds something else. */
export function entriesOf(vocab: TokenizerJson["model"]["vocab"]): [text: string, id: number][] {
  const entries = Array.isArray(vocab)
    ? vocab.map((piece, id): [unknown, unknown] => [Array.isArray(piece) ? piece[0] : undefined, id])
    : Object.entries(vocab);
  for (const [text, id] of entries) {
    if (typeof text !== "string" || !Number.isSafeInteger(id) || Number(id) < 0 || Number(id) > MAX_ID) {
      throw new Error("tokenizer.json: model.vocab holds something that is no token");
    }
  }
  return entries as [string, number][];
}

/** Larger than any vocabulary; a list by id must not become sparse beyond memory. */
const MAX_ID = 10_000_000;
