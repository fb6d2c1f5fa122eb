/**
 * Finds the control tokens of a model. Control tokens steer the model, so users' text must never
 * become one: tokens that the model's makers call special, tokens that begin or end a text, and
 * turn markers.
 */
import type { AddedToken, TokenizerConfig, TokenizerJson } from "./schema.js";
import { textsOf } from "./tokenizer-json.js";

/** The files of a model's folder that name control tokens. */
export interface ControlTokenSources {
  readonly json: TokenizerJson;
  readonly config: TokenizerConfig | undefined;
  readonly templates: readonly string[];
  /** The ids of the tokens that begin and end a text, from the model's configuration. */
  readonly ids: readonly number[];
}

/**
 * Tokens such as `<think>`, without the special flag, count as text: models write them, and
 * templates look for them. But some models do not flag their turn markers either (DeepSeek's
 * `<｜User｜>`). So a token of that form is a control token if the template prints it.
 */
export function controlTokens({ json, config, templates, ids }: ControlTokenSources): AddedToken[] {
  const named = specialNames(config);
  const special = new Set([...ids, ...specialIds(config)]);
  const added = (json.added_tokens ?? []).filter(isMarkup);
  const known = new Set(added.map(({ content }) => content));
  // Special tokens that only tokenizer_config.json names.
  const unlisted = textsOf(json).flatMap((content, id) =>
    named.has(content) && !known.has(content) && isMarkup({ content }) ? [{ id, content, special: true }] : [],
  );
  const isTurnMarker = (content: string): boolean =>
    /^<[|｜].*[|｜]>$/s.test(content) && templates.some((template) => template.includes(content));
  const steers = ({ id, content, special: flag }: AddedToken): boolean =>
    flag || named.has(content) || isTurnMarker(content) || special.has(id);
  return [...added.filter(steers), ...unlisted];
}

/**
 * White space and single characters are text, even if a model calls them special, because users
 * must be able to write all ordinary text.
 */
function isMarkup({ content }: { readonly content: string }): boolean {
  return content.trim() !== "" && Array.from(content).length > 1;
}

/** Special tokens by the names of tokenizer_config.json. */
export type NamedTokens = Partial<Record<`${(typeof names)[number]}_token`, string | undefined>>;

const names = ["bos", "eos", "unk", "pad", "sep", "cls", "mask"] as const;

/** @returns the texts of the templates' variables, such as `bos_token` */
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
