/**
 * The typed wrapper of list.lua: lists a tenant's requests that workers have set aside in a bucket.
 */
import { bucketTag } from "../bucket-tag.js";
import { setAsideKey } from "../keys.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text } from "../../redis/script.js";
import { deadRequestOf, type DeadPlace, type DeadRequest } from "./dead-request.js";

export interface DeadPage {
  /** Newest first; may be empty although there are more. */
  readonly found: readonly DeadRequest[];
  /** The last place that the script has looked at; undefined if the bucket has no more. */
  readonly next: DeadPlace | undefined;
}

/** Comes after the name of any model. */
const AFTER_ALL = "~";

const script = defineScript(
  new URL("./list.lua", import.meta.url),
  (reply) => {
    const [entries, entry, model] = list(reply);
    const found = list(entries).map((one) => {
      const [name, id, length, fields] = list(one);
      return { model: text(name), entry: text(id), frame: integer(length), fields: list(fields) };
    });
    return { found, entry: text(entry), model: text(model) };
  },
  {
    keys: ["noted"],
    args: ["tag", "tenant", "from", "behind", "most"],
    durable: true,
  },
);

export interface DeadQuery {
  readonly tenant: string;
  /** The entry behind which the page begins; undefined: with the newest entry. */
  readonly from: DeadPlace | undefined;
  readonly most: number;
}

export async function listDeadRequests(
  redis: RedisClient,
  bucket: number,
  { tenant, from, most }: DeadQuery,
): Promise<DeadPage> {
  const args = {
    tag: bucketTag(bucket),
    tenant,
    from: from?.entry ?? "+",
    behind: from === undefined ? "" : behindIn(bucket, from),
    most,
  };
  const { found, entry, model } = await script(redis, { noted: setAsideKey(bucket) }, args);
  return {
    found: found.flatMap((one) => deadRequestOf({ bucket, ...one }, one.fields, one.frame) ?? []),
    next: entry === "" ? undefined : { bucket, entry, model },
  };
}

/** Entries of the same time are in the order of their buckets, and then of their models. */
function behindIn(bucket: number, { bucket: last, model }: DeadPlace): string {
  if (bucket === last) return model;
  return bucket > last ? "" : AFTER_ALL;
}
