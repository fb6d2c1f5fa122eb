/** Which tokens steer the model, so that users' text must never become one: what the model's makers call special, what ends or begins a text, and turn markers. */
import type { AddedToken, TokenizerConfig, TokenizerJson } from "./schema.js";
import { textsOf } from "./tokenizer-json.js";

export interface ControlFacts {
  readonly json: TokenizerJson;
  readonly config: TokenizerConfig | undefined;
  readonly templates: readonly string[];
  /** Of the model: what ends and begins a text. */
  readonly ids: readonly number[];
}

/**
 * Tokens such as `<think>`, which their makers left out of the special ones, are text: models write them, and templates look for them. But some left out the turn
 * markers too (DeepSeek's `<｜User｜>`), so what has that form and is printed by the template counts.
 */
export function controlTokens({ json, config, templates, ids }: ControlFacts): AddedToken[] {
  const named = specialNames(config);
  const special = new Set([...ids, ...specialIds(config)]);
  const added = (json.added_tokens ?? []).filter(isMarkup);
  const known = new Set(added.map(({ content }) => content));
  // A special token that only tokenizer_config.json knows of.
  const unlisted = textsOf(json).flatMap((content, id) =>
    named.has(content) && !known.has(content) && isMarkup({ content }) ? [{ id, content, special: true }] : [],
  );
  const isTurnMarker = (content: string): boolean =>
    /^<[|｜].*[|｜]>$/s.test(content) && templates.some((template) => template.includes(content));
  const steers = ({ id, content, special: flag }: AddedToken): boolean =>
    flag || named.has(content) || isTurnMarker(content) || special.has(id);
  return [...added.filter(steers), ...unlisted];
}

/** White space and single characters are text, whoever calls them special: all that is written must remain writable. */
function isMarkup({ content }: { readonly content: string }): boolean {
  return content.trim() !== "" && Array.from(content).length > 1;
}

export type NamedTokens = Partial<Record<`${(typeof names)[number]}_token`, string | undefined>>;

const names = ["bos", "eos", "unk", "pad", "sep", "cls", "mask"] as const;

/** The texts that templates know as `bos_token` and so on. */
export function namedTokens(config: TokenizerConfig | undefined): NamedTokens {
  return Object.fromEntries(
    names.flatMap((name) => {
      const token = config?.[`${name}_token`];
      return token === undefined ? [] : [[`${name}_token`, token]];
    }),
  );
}

function specialNames(config: TokenizerConfig | undefined): Set<string> {
  const additional = config?.additional_special_tokens ?? [];
  return new Set([...Object.values(namedTokens(config)), ...additional].filter((token) => token !== undefined));
}

function specialIds(config: TokenizerConfig | undefined): number[] {
  const entries = Object.entries(config?.added_tokens_decoder ?? {});
  return entries.filter(([, { special }]) => special === true).map(([id]) => Number(id));
}
