/** One request on OpenAI's paths, between its body and its answer. */
import type { ServedModel } from "#shared/contract/announcement.js";
import type { Usage } from "../generation/fold.js";
import type { GenerationRequest, OpenStream } from "../inference.js";
import type { Delivery } from "./parse-common.js";
import type { Wording } from "./wording.js";

export interface Job {
  readonly model: ServedModel;
  /** One for each prompt; never empty. */
  readonly requests: readonly GenerationRequest[];
  /** Of each prompt. */
  readonly choices: number;
  readonly delivery: Delivery;
  readonly wording: Wording;
}

/** What the body has no say in. */
export type RequestTerms = Pick<GenerationRequest, "tenant" | "deadlineMs" | "background">;

export interface AdmittedJob extends Job {
  /** In the order of the requests. */
  readonly streams: readonly OpenStream[];
}

/** What an answer begins with, and each of its chunks. */
export function headOf({ model, streams, wording }: AdmittedJob, object: string): object {
  return {
    id: `${wording.idPrefix}${streams[0]?.id}`,
    object,
    created: Math.floor(Date.now() / 1000),
    model: model.name,
    system_fingerprint: `fp_${model.digest.slice(0, 12)}`,
  };
}

/** As the header tells them. */
export function publicIds({ streams }: AdmittedJob): string {
  return streams.map(({ id }) => id).join(", ");
}

export function totalUsage(parts: readonly Usage[]): object {
  const sum = (name: keyof Usage): number => parts.reduce((total, usage) => total + usage[name], 0);
  const [prompt_tokens, completion_tokens] = [sum("prompt_tokens"), sum("completion_tokens")];
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}
