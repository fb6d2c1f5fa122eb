/** Reads answers by the types that the gateway declares. */
import { isObject } from "#shared/json/members.js";
import { parseJson, type IsTensorData } from "#shared/json/parse.js";
import type { Page } from "../../gateway/answers.js";
import { jsonOf, type Gateway } from "./gateway.js";

/**
 * Parses an answer. An integer beyond 2^53 becomes a bigint. Each member of the answer may be
 * absent, because the gateway may have another version; a member that is there is as declared.
 */
export function readAnswer<Answer>(text: string, isTensorData?: IsTensorData): Partial<Answer> {
  const value = parseJson(Buffer.from(text), isTensorData);
  return (isObject(value) ? value : {}) as Partial<Answer>;
}

/** The answer without a long member that a list leaves out. */
export function without<Answer extends object>(answer: Answer, left: keyof Answer): Partial<Answer> {
  return Object.fromEntries(Object.entries(answer).filter(([name]) => name !== left)) as Partial<Answer>;
}

/**
 * Reads all pages of a list.
 * @param query the filters and the size of a page
 */
export async function readPages<Item>(
  gateway: Gateway,
  path: string,
  query: URLSearchParams,
  isTensorData?: IsTensorData,
): Promise<Partial<Item>[]> {
  const found: Partial<Item>[] = [];
  for (let isFirst = true; ; isFirst = false) {
    const text = jsonOf(await gateway.get(`${path}?${query.toString()}`, { known: !isFirst }), gateway);
    const page = readAnswer<Page<Item>>(text, isTensorData);
    found.push(...(page.data ?? []));
    if (page.has_more !== true || typeof page.last_id !== "string") return found;
    query.set("after", page.last_id);
  }
}
