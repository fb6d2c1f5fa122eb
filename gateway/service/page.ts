/** Pages of lists. */
import { InferenceError } from "#shared/errors.js";

/** Which page a caller asks for. */
export interface PageTerms {
  /** Most items of the page. */
  readonly limit: number;
  /** The page begins behind the item with this id; undefined for the first page. */
  readonly after: string | undefined;
}

export interface Page<Item> {
  readonly data: readonly Item[];
  readonly hasMore: boolean;
}

export function unknownPlace(): InferenceError {
  return new InferenceError("invalid_argument", "after must be the 'last_id' of a page that was answered before");
}
