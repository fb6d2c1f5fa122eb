/**
 * The one place that uses `@huggingface/tokenizers`. The types of the library's parts stand here,
 * because its own types do not resolve under Node's module rules.
 */
import { Tokenizer } from "@huggingface/tokenizers";

export interface Library {
  readonly normalizer: { normalize(text: string): string } | null;
  readonly pre_tokenizer: {
    pre_tokenize(text: string, options: { readonly section_index: number }): string[];
  } | null;
  readonly model: {
    readonly tokens_to_ids: ReadonlyMap<string, number>;
    readonly unk_token_id?: number | undefined;
    _call(words: readonly string[]): string[];
  };
  readonly post_processor: {
    post_process(tokens: readonly string[], pair: null, addSpecialTokens: boolean): { readonly tokens: string[] };
  } | null;
  readonly decoder: { decode(tokens: readonly string[]): string } | null;
}

type Parts = Partial<Record<"normalizer" | "pre_tokenizer" | "post_processor" | "decoder" | "model", unknown>>;

/**
 * @param parts the needed parts of a tokenizer.json; other parts stay empty
 * @throws Error with a sentence for the operator
 */
export function openLibrary(parts: Parts): Library {
  const given = Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, part ?? null]));
  try {
    return new Tokenizer({ ...EMPTY, ...given }, {}) as Library;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`tokenizer.json cannot be used: ${reason}`, { cause });
  }
}

const EMPTY = {
  normalizer: null,
  pre_tokenizer: null,
  post_processor: null,
  decoder: null,
  added_tokens: [],
  model: { type: "BPE", vocab: {}, merges: [] },
};
