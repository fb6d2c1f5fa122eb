/**
 * The hash tag of each bucket. Redis Cluster puts a key into the slot of its tag, so the tags are
 * chosen such that their slots lie evenly over all slots, and the buckets evenly over the nodes.
 */
import { MOST_BUCKETS } from "../buckets.js";
import { slotOf, slotsOfTags } from "../redis/slots.js";

const SLOTS = 16_384;
/** Each bucket has this many slots to itself, in one of which its tag lies. */
const SLOTS_PER_BUCKET = SLOTS / MOST_BUCKETS;

const tags: (string | undefined)[] = [];

/**
 * The tag of a bucket in its braces. It depends on nothing but the bucket's number: whatever the
 * number of buckets, the first ones of them lie evenly, and for a power of two exactly so.
 */
export function bucketTag(bucket: number): string {
  return (tags[bucket] ??= findTag(bucket));
}

function findTag(bucket: number): string {
  const first = positionOf(bucket) * SLOTS_PER_BUCKET;
  const fits = (slot: number) => slot >= first && slot < first + SLOTS_PER_BUCKET;
  if (fits(slotOf(`{${bucket}}`))) return `{${bucket}}`;
  // A thousand are tried on average.
  const slotOfTag = slotsOfTags(`${bucket}.`);
  for (let i = 1; ; i++) if (fits(slotOfTag(String(i)))) return `{${bucket}.${i}}`;
}

/**
 * The place of a bucket among `MOST_BUCKETS`: its number with the order of its bits reversed, so
 * that 0, 1, 2, 3 lie at the beginning, in the middle, and in the middle of both halves.
 */
function positionOf(bucket: number): number {
  let position = 0;
  for (let bit = 1; bit < MOST_BUCKETS; bit *= 2) position = position * 2 + (bucket & bit ? 1 : 0);
  return position;
}
