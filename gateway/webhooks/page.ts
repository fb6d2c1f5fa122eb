/** OpenAI's lists: `{"object":"list","data":[…],"first_id","last_id","has_more"}`. */
import { InferenceError } from "#shared/errors.js";

const USUAL_LIMIT = 20;
const MOST = 100;

export function readLimit(text: string | undefined): number {
  if (text === undefined) return USUAL_LIMIT;
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= MOST) return limit;
  throw new InferenceError("invalid_argument", `limit must be an integer from 1 to ${MOST}, not '${text}'`);
}

export function unknownPlace(): InferenceError {
  return new InferenceError("invalid_argument", "after must be the 'last_id' of a page that was answered before");
}

export function listOf<Item extends { readonly id: string }>(data: readonly Item[], hasMore: boolean) {
  return { object: "list", data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more: hasMore };
}
