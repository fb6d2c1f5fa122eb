/**
 * A page of a list, in OpenAI's form: `object`, `data`, `first_id`, `last_id` and `has_more`.
 */
import { z } from "zod";
import { pageSize, text } from "./parameters.js";

/** The lists of jobs and of requests set aside take a limit with leading zeros, too. */
export const longLimit = pageSize(20, 100);
/** The query of most lists: how many items a page has, and the item behind which it begins. */
export const pageQuery = { limit: pageSize(20, 100, 3), after: text };

export function listOf<Item extends { readonly id: string }>(data: readonly Item[], hasMore: boolean) {
  return { object: "list", data, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null, has_more: hasMore };
}

/**
 * A page of items that are in JSON already.
 * @param first the first item's id; undefined for an empty page
 * @param last the id of the item behind which the next page begins
 * @returns JSON
 */
export function listText(
  items: readonly string[],
  { first, last }: { readonly first: string | undefined; readonly last: string | undefined },
  hasMore: boolean,
): string {
  const ids = `"first_id":${JSON.stringify(first ?? null)},"last_id":${JSON.stringify(last ?? null)}`;
  return `{"object":"list","data":[${items.join(",")}],${ids},"has_more":${hasMore}}`;
}

/** @param item the shape of an item */
export function pageShape(item: z.ZodType) {
  return z.strictObject({
    object: z.literal("list"),
    data: z.array(item),
    first_id: z.string().nullable(),
    last_id: z.string().nullable(),
    has_more: z.boolean(),
  });
}
