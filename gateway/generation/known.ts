/**
 * What a front door knows of a request's members. Whatever would change the answer and is not
 * obeyed is refused by name: a client that is answered with 200 may believe that it was obeyed.
 * Clients also send what asks for nothing, such as a parameter with its default, and that is taken.
 */
import type { JsonObject } from "#shared/json/parse.js";
import { printJson } from "#shared/json/print.js";
import { ParameterFault } from "./fault.js";
import { given } from "./read-member.js";

export interface KnownMembers {
  /** Read by whoever parses the request. */
  readonly obeyed: ReadonlySet<string>;
  /** Of no consequence to an answer, whatever they say. */
  readonly harmless: ReadonlySet<string>;
  /** Not obeyed, with the values, as JSON, that ask for nothing; null always does. */
  readonly unsupported: ReadonlyMap<string, readonly string[]>;
}

const maxNameLength = 64;

/** @throws ParameterFault naming the first member that would have to be obeyed, and is not */
export function refuseUnobeyed(members: JsonObject, { obeyed, harmless, unsupported }: KnownMembers, path = ""): void {
  for (const name of Object.keys(members)) {
    const value = given(members, name);
    if (value === undefined || obeyed.has(name) || harmless.has(name)) continue;
    const shown = path + name.slice(0, maxNameLength);
    const idle = unsupported.get(name);
    if (idle === undefined) throw new ParameterFault(shown, `Unrecognized request argument supplied: ${shown}`);
    if (idle.includes(printJson(value))) continue;
    const way = ["leave it out", ...idle.map((json) => `give ${json}`)].join(" or ");
    throw new ParameterFault(shown, `${shown} is not supported: ${way}`);
  }
}

/** Of conversations, on every path. */
export const conversationMembers = ["sequence_id", "sequence_start", "sequence_end"];

/** Those of vLLM's sampling parameters, old and new, that are not obeyed. */
export const unsupportedSampling: readonly (readonly [name: string, idle: readonly string[]])[] = [
  ["allowed_token_ids", []],
  ["bad_words", ["[]", '""']],
  ["detokenize", ["true"]],
  ["early_stopping", ["false"]],
  ["guided_choice", []],
  ["guided_decoding", []],
  ["guided_decoding_backend", []],
  ["guided_grammar", []],
  ["guided_json", []],
  ["guided_regex", []],
  ["guided_whitespace_pattern", []],
  ["include_stop_str_in_output", ["false"]],
  ["length_penalty", ["1"]],
  ["logits_processors", ["[]"]],
  ["priority", ["0"]],
  ["prompt_logprobs", []],
  ["return_token_ids", ["false"]],
  ["skip_special_tokens", ["true"]],
  ["spaces_between_special_tokens", ["true", "false"]],
  ["structural_tag", []],
  ["structured_outputs", []],
  ["truncate_prompt_tokens", []],
  ["use_beam_search", ["false"]],
];
