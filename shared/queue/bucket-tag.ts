/**
 * The hash tag of each bucket. Redis Cluster puts a key into the slot of its tag. These tags spread
 * their slots evenly over all slots, so the buckets spread evenly over the nodes.
 */
import { MOST_BUCKETS } from "../buckets.js";
import { slotOf, slotsOfTags } from "../redis/slots.js";

const SLOTS = 16_384;
/** Each bucket has this many slots to itself; its tag lies in one of these slots. */
const SLOTS_PER_BUCKET = SLOTS / MOST_BUCKETS;

const tags: (string | undefined)[] = [];

/**
 * The tag of a bucket in its braces. Only the bucket's number decides the tag. For any number of
 * buckets the tags spread evenly, and for a power of two exactly so.
 */
export function bucketTag(bucket: number): string {
  return (tags[bucket] ??= findTag(bucket));
}

function findTag(bucket: number): string {
  const first = positionOf(bucket) * SLOTS_PER_BUCKET;
  const fits = (slot: number) => slot >= first && slot < first + SLOTS_PER_BUCKET;
  if (fits(slotOf(`{${bucket}}`))) return `{${bucket}}`;
  // The loop tries a thousand tags on average.
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
