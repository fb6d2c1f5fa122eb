/**
 * A request on one of OpenAI's paths after its body was parsed, and what both paths put into their
 * answers. The endpoints (`chat.ts`, `completions.ts`) make it; `answer.ts` and `stream-answer.ts`
 * carry it out.
 */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { TokenRecord } from "#shared/contract/generation.js";
import type { GenerationRequest } from "../admission/inference.js";
import type { OpenStream } from "../stream/open-stream.js";
import type { Usage, WholeChoice } from "../generation/collect.js";
import type { Delivery } from "./body.js";

export interface OpenAiRequest {
  readonly model: ServedModel;
  /** One generation for each prompt; never empty. */
  readonly generations: readonly GenerationRequest[];
  /** How many choices each prompt has. */
  readonly choices: number;
  readonly delivery: Delivery;
  readonly renderer: ChoiceRenderer;
}

/** What is decided outside of the body: by the headers, the settings and the tenant. */
export type RequestTerms = Pick<GenerationRequest, "tenant" | "deadlineMs" | "background">;

export interface AdmittedRequest extends OpenAiRequest {
  /** The admitted generations, in the order of `generations`. */
  readonly streams: readonly OpenStream[];
}

/**
 * The members with which a whole answer, or each chunk of a stream, begins.
 * @param object the value of its member `object`
 */
export function answerHead({ model, streams, renderer }: AdmittedRequest, object: string): object {
  return headOf({ id: streams[0]?.id ?? "", model, renderer }, object, Date.now());
}

/** What the head of an answer is made of. */
export interface Head {
  /** The public id of its first generation. */
  readonly id: string;
  readonly model: Pick<ServedModel, "name" | "digest">;
  readonly renderer: ChoiceRenderer;
}

/** @param at when it was made, in ms since 1970 */
export function headOf({ id, model, renderer }: Head, object: string, at: number): object {
  return {
    id: `${renderer.idPrefix}${id}`,
    object,
    created: Math.floor(at / 1000),
    model: model.name,
    system_fingerprint: `fp_${model.digest.slice(0, 12)}`,
  };
}

/** The request ids as the header `baton-request-id` tells them: one for each prompt. */
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
 * is the same for both paths. A renderer keeps count of what it has rendered, so each answer needs
 * its own.
 */
export interface ChoiceRenderer {
  /** What OpenAI's ids of such answers begin with. */
  readonly idPrefix: string;
  /** The member `object` of a whole answer. */
  readonly wholeObject: string;
  /** The member `object` of a chunk. */
  readonly chunkObject: string;
  /**
   * Renders a choice of a whole answer.
   * @param index the choice's index, counted through over all prompts
   * @param prompt the index of its prompt
   */
  renderChoice(choice: WholeChoice, index: number, prompt: number): object;
  /**
   * Renders what one record of a prompt's generation adds to a stream.
   * @param prompt the index of the prompt
   * @returns the choices of the chunks to send, one for each; none where nothing can be told yet
   */
  renderChunks(record: TokenRecord, prompt: number): object[];
  /**
   * Renders a record that only adds a text to choice 0, without parsing it. Nearly every record is
   * such a one. The result is the very JSON that `renderChunks` would give.
   * @param text the added text, as JSON
   * @returns the choice as JSON; "" where nothing can be told yet; undefined where the record has
   *   to be parsed and given to `renderChunks`, as the first one of a stream has
   */
  renderTextChunk(text: string, prompt: number): string | undefined;
}
