/** The typed wrapper of list.lua: lists the sequences of a tenant, page by page. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, text } from "../../redis/script.js";
import { liveKey, modelTag } from "../keys.js";
import type { PageStart } from "../pieces/page.js";
import { keysOf, type SequenceAddress } from "./address.js";
import { viewOf, type SequenceState, type SequenceView } from "./view.js";

export interface Page {
  /** May be empty although there are more. */
  readonly views: readonly SequenceView[];
  /** Undefined if the bucket has no more. */
  readonly next: PageStart | undefined;
}

/** Which of a tenant's sequences a listing is about; an undefined term is met by all. */
export interface ListTerms {
  /** Version of the model. */
  readonly version: string | undefined;
  readonly state: SequenceState | undefined;
  /** A name begins with one of these. */
  readonly beginnings: readonly string[] | undefined;
}

const script = defineScript(
  new URL("./list.lua", import.meta.url),
  (reply): Page => {
    const [views, cursor, after] = list(reply);
    const next = { cursor: text(cursor), after: text(after) };
    return { views: list(views).map(viewOf), next: next.cursor === "0" && next.after === "" ? undefined : next };
  },
  {
    keys: ["sequences"],
    args: ["base", "tenant", "cursor", "after", "most", "version", "state", "beginnings"],
    durable: true,
  },
);

/** @param most the most sequences of the page */
export function listSequences(
  redis: RedisClient,
  where: Omit<SequenceAddress, "name">,
  tenant: string,
  { cursor, after }: PageStart,
  most: number,
  { version = "", state, beginnings = [] }: Partial<ListTerms> = {},
): Promise<Page> {
  const meant = { version, state: state ?? "", beginnings: beginnings.join(" ") };
  return script(redis, keysOf(where), { base: modelTag(where), tenant, cursor, after, most, ...meant });
}

/** @returns how many sequences of a model there are, with those that have just idled out */
export async function countSequences(redis: RedisClient, model: string, buckets: number): Promise<number> {
  const keys = Array.from({ length: buckets }, (_, bucket) => liveKey({ bucket, model }));
  const counts = await Promise.all(keys.map((key) => redis.zcard(key)));
  return counts.reduce((sum, count) => sum + count, 0);
}
