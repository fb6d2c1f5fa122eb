/**
 * Lists the jobs of a tenant over all buckets, the newest first. Each bucket returns a bounded
 * page. The list has the jobs that come before the places up to which all buckets have looked. If
 * few jobs match the filters, a page ends before it is full, so that no page costs Redis long.
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
  /** The next page begins behind this job; undefined if the page has looked at no job. */
  readonly last: RequestAddress | undefined;
}

/** Most calls for one page, in addition to the first call to each bucket. */
const MOST_CALLS = 16;

/** The state of one bucket while the gateway makes a page. */
interface Bucket {
  readonly bucket: number;
  /** The place of the next call; undefined if the bucket has no more jobs. */
  next: JobPlace | undefined;
  readonly found: JobView[];
}

/**
 * @param from the job behind which the page begins
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
    // Only jobs before the place of the slowest bucket are final.
    const open = all.flatMap(({ next }) => (next === undefined ? [] : [next]));
    const known = all.flatMap(({ found }) => found).filter((one) => open.every((place) => comesBefore(one, place)));
    return open.length === 0 || known.length > most;
  };
  for (let calls = 0; calls <= MOST_CALLS && !isComplete(); calls++) {
    const open = all.filter(({ next }) => next !== undefined);
    const first = open.reduce((one, other) => (comesFirst(one.next, other.next) ? one : other));
    // Buckets that have looked far enough wait for the slower buckets.
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
  const told = jobs.slice(0, most).map(({ bucket, view }) => listed(bucket, tenant, view));
  if (isComplete()) return { jobs: told, hasMore: jobs.length > most, last: told.at(-1)?.job };
  const open = all.filter(({ next }) => next !== undefined);
  const { bucket, next = from } = open.reduce((one, other) => (comesFirst(one.next, other.next) ? one : other));
  const known = jobs.filter(({ view }) => comesBefore(view, next));
  return {
    jobs: known.map((one) => listed(one.bucket, tenant, one.view)),
    hasMore: true,
    last: addressIn(bucket, tenant, next.id),
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

/** The id of a job in the index, as in `JobPlace`. */
export function indexId({ model, tenant, request }: RequestAddress): string {
  return `${model}:${tenant}:${request}`;
}

function listed(bucket: number, tenant: string, view: JobView): ListedJob {
  return { job: addressIn(bucket, tenant, view.name), view };
}

/** The job with this id in the index of a bucket. */
function addressIn(bucket: number, tenant: string, id: string): RequestAddress {
  const [model = "", , request = ""] = id.split(":");
  return { bucket, model, tenant, request };
}
