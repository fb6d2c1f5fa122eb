/** The typed wrapper of list.lua: lists the jobs of a tenant in a bucket, page by page. */
import { bucketTag } from "../bucket-tag.js";
import { GROUP, jobsKey } from "../keys.js";
import { loadKeyOf } from "../pieces/load.js";
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, list, text } from "../../redis/script.js";
import { viewOf, type JobState, type JobView } from "./view.js";

/**
 * The job behind which a page begins. Newer jobs come first; at equal times, higher ids come first.
 */
export interface JobPlace {
  /** Redis ms at which the job was recorded; Infinity to begin with the newest. */
  readonly at: number;
  /** From the index: model and name. */
  readonly id: string;
}

export const newestJobs: JobPlace = { at: Infinity, id: "" };

export interface JobFilters {
  /** Absent: any. */
  readonly states?: readonly JobState[] | undefined;
  readonly model?: string | undefined;
  /** The schedule that has made the jobs. */
  readonly schedule?: string | undefined;
  /** Pairs of which a job must have all. */
  readonly labels?: readonly (readonly [name: string, value: string])[] | undefined;
}

export interface JobPage {
  /** The newest first; may be empty although there are more jobs. */
  readonly views: readonly JobView[];
  /** The last place of this page; undefined if the bucket has no more jobs. */
  readonly next: JobPlace | undefined;
}

const script = defineScript(
  new URL("./list.lua", import.meta.url),
  (reply): JobPage => {
    const [views, at, id] = list(reply);
    const next = text(at) === "" ? undefined : { at: Number(text(at)), id: text(id) };
    return { views: list(views).map(viewOf), next };
  },
  {
    keys: ["jobs", "load"],
    args: ["tag", "group", "at", "id", "most", "filters"],
    durable: true,
  },
);

/** @param most jobs of the page */
export function listJobs(
  redis: RedisClient,
  bucket: number,
  tenant: string,
  { at, id }: JobPlace,
  most: number,
  filters: JobFilters,
): Promise<JobPage> {
  const keys = { jobs: jobsKey(bucket, tenant), load: loadKeyOf(redis, bucket) };
  const labels = filters.labels?.map(([name, value]) => [name, value, `"${name}":${JSON.stringify(value)}`]);
  return script(redis, keys, {
    tag: bucketTag(bucket),
    group: GROUP,
    at: at === Infinity ? "+inf" : at,
    id,
    most,
    filters: JSON.stringify({ ...filters, labels }),
  });
}
