/**
 * A parsed request on one of OpenAI's paths, and the parts of an answer that both paths share. The
 * endpoints (`chat.ts`, `completions.ts`) make the request; `answer.ts` and `stream-answer.ts`
 * carry it out.
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { TokenRecord } from "#shared/contract/generation.js";
import type { GenerationRequest } from "../../admission/inference.js";
import type { OpenStream } from "../../stream/open-stream.js";
import type { Usage, WholeChoice } from "../../generation/collect.js";
import type { Delivery } from "./body.js";

export interface OpenAiRequest {
  readonly model: ServedModel;
  /** One generation for each prompt; never empty. */
  readonly generations: readonly GenerationRequest[];
  /** Number of choices of each prompt. */
  readonly choices: number;
  readonly delivery: Delivery;
  readonly renderer: ChoiceRenderer;
}

/** The terms outside of the body: from the headers, the settings and the tenant. */
export type RequestTerms = Pick<GenerationRequest, "tenant" | "budget" | "deadlineMs" | "background">;

export interface AdmittedRequest extends OpenAiRequest {
  /** The admitted generations, in the order of `generations`. */
  readonly streams: readonly OpenStream[];
}

/**
 * Returns the first members of a whole answer, or of each chunk of a stream.
 * @param object the value of the member `object`
 */
export function answerHead({ model, streams, renderer }: AdmittedRequest, object: string): object {
  return headOf({ id: streams[0]?.id ?? "", model, renderer }, object, Date.now());
}

/** The values in the head of an answer. */
export interface Head {
  /** The public id of the answer's first generation. */
  readonly id: string;
  readonly model: Pick<ServedModel, "name" | "digest">;
  readonly renderer: ChoiceRenderer;
}

/** @param at time of the answer, in ms since 1970 */
export function headOf({ id, model, renderer }: Head, object: string, at: number): object {
  return {
    id: `${renderer.idPrefix}${id}`,
    object,
    created: Math.floor(at / 1000),
    model: model.name,
    system_fingerprint: `fp_${model.digest.slice(0, 12)}`,
  };
}

/** The request ids for the header `baton-request-id`: one for each prompt. */
export function publicIds({ streams }: AdmittedRequest): string {
  return streams.map(({ id }) => id).join(", ");
}

/** @returns the `usage` of an answer, from the token counts of each of its prompts */
export function totalUsage(parts: readonly Usage[]): object {
  const sum = (name: keyof Usage): number => parts.reduce((total, usage) => total + usage[name], 0);
  const [prompt_tokens, completion_tokens] = [sum("prompt_tokens"), sum("completion_tokens")];
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

/**
 * Renders the choices of one answer in the form of one of OpenAI's paths. All else about answering
 * is the same for both paths. A renderer remembers its earlier chunks, so each answer needs its
 * own.
 */
export interface ChoiceRenderer {
  /** Prefix of OpenAI's ids of such answers. */
  readonly idPrefix: string;
  /** The member `object` of a whole answer. */
  readonly wholeObject: string;
  /** The member `object` of a chunk. */
  readonly chunkObject: string;
  /**
   * Renders a choice of a whole answer.
   * @param index the choice's index in the series over all prompts
   * @param prompt the index of its prompt
   */
  renderChoice(choice: WholeChoice, index: number, prompt: number): object;
  /**
   * Renders the text that one record of a prompt's generation adds to a stream.
   * @param prompt the index of the prompt
   * @returns the choices of the chunks to send, one for each; empty if there is nothing to send yet
   */
  renderChunks(record: TokenRecord, prompt: number): object[];
  /**
   * Renders a record that only adds a text to choice 0, without parsing. Nearly all records are of
   * this kind. The result is exactly the JSON of `renderChunks`.
   * @param text the added text, as JSON
   * @returns the choice as JSON; "" if there is nothing to send yet; undefined if the caller has to
   * parse the record for `renderChunks`, for example the first record of a stream
   */
  renderTextChunk(text: string, prompt: number): string | undefined;
}
