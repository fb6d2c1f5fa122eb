/**
 * Lists the jobs of a tenant over all buckets, the newest first. Each bucket is asked for a bounded
 * page; what is told is what comes before the places up to which all of them have looked.
 */
import type { RequestAddress } from "#shared/queue/address.js";
import { listJobs, type JobFilters, type JobPlace } from "#shared/queue/jobs/list.js";
import type { JobView } from "#shared/queue/jobs/view.js";
import type { RedisClient } from "#shared/redis/connect.js";

export interface ListedJob {
  readonly job: RequestAddress;
  readonly view: JobView;
}

export interface ListedJobs {
  readonly jobs: readonly ListedJob[];
  readonly hasMore: boolean;
}

/** What is known of one bucket while a page is put together. */
interface Bucket {
  readonly bucket: number;
  /** Where to go on; undefined where it has no more. */
  next: JobPlace | undefined;
  readonly found: JobView[];
}

/**
 * @param from behind which job it begins
 * @param most jobs of the page
 */
export async function listPage(
  redis: RedisClient,
  buckets: number,
  tenant: string,
  from: JobPlace,
  most: number,
  filters: JobFilters,
): Promise<ListedJobs> {
  const all = Array.from({ length: buckets }, (_, bucket): Bucket => ({ bucket, next: from, found: [] }));
  const isComplete = (): boolean => {
    // All that comes before the place of the bucket that has looked the least far is known.
    const open = all.flatMap(({ next }) => (next === undefined ? [] : [next]));
    const known = all.flatMap(({ found }) => found).filter((one) => open.every((place) => comesBefore(one, place)));
    return open.length === 0 || known.length > most;
  };
  while (!isComplete()) {
    const open = all.filter(({ next }) => next !== undefined);
    const first = open.reduce((one, other) => (comesFirst(one.next, other.next) ? one : other));
    // Those that have looked far enough wait for the others.
    const behind = open.filter((one) => one.next === from || one === first);
    await Promise.all(
      behind.map(async (one) => {
        const { views, next } = await listJobs(redis, one.bucket, tenant, one.next ?? from, most + 1, filters);
        one.found.push(...views);
        one.next = next;
      }),
    );
  }
  const jobs = all.flatMap(({ bucket, found }) => found.map((view) => ({ bucket, view })));
  jobs.sort((a, b) => (comesFirst(placeOf(a.view), placeOf(b.view)) ? -1 : 1));
  return {
    jobs: jobs.slice(0, most).map(({ bucket, view }) => listed(bucket, tenant, view)),
    hasMore: jobs.length > most,
  };
}

function placeOf({ recordedAt, name }: JobView): JobPlace {
  return { at: recordedAt, id: name };
}

function comesBefore(view: JobView, place: JobPlace): boolean {
  const one = placeOf(view);
  return (one.at === place.at && one.id === place.id) || comesFirst(one, place);
}

/** Whether one place comes before another in the list. */
function comesFirst(one: JobPlace | undefined, other: JobPlace | undefined): boolean {
  if (one === undefined || other === undefined) return one !== undefined;
  return one.at === other.at ? one.id > other.id : one.at > other.at;
}

/** The id of a job in the index, as `JobPlace` has it. */
export function indexId({ model, tenant, request }: RequestAddress): string {
  return `${model}:${tenant}:${request}`;
}

function listed(bucket: number, tenant: string, view: JobView): ListedJob {
  const [model = "", , request = ""] = view.name.split(":");
  return { job: { bucket, model, tenant, request }, view };
}
