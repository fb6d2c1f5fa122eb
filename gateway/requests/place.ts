/**
 * A page of a listing that goes through buckets, and the beginning of the next page as a text that
 * the client sends back.
 */
import { InferenceError } from "#shared/errors.js";
import { firstPage, type PageStart } from "#shared/queue/pieces/page.js";

export interface Place extends PageStart {
  readonly bucket: number;
}

export const beginning: Place = { bucket: 0, ...firstPage };

export interface Listing {
  /** The most items of the page. */
  readonly limit: number;
  /** The text of the page before; undefined for the first page. */
  readonly after: string | undefined;
  /** How many buckets there are to go through. */
  readonly buckets: number;
  /** The most reads for a page, since most of what they look at may be others'. */
  readonly mostReads: number;
}

export interface Read<Item> {
  readonly items: readonly Item[];
  /** The place behind these items in the bucket; undefined if the bucket has no more. */
  readonly next: PageStart | undefined;
}

/**
 * @param read at most so many items of a bucket, from a place on; may give none before the end
 * @returns the items, and the beginning of the next page; undefined if this page is the last
 * @throws InferenceError for an `after` that no page has given
 */
export async function readPage<Item>(
  { limit, after, buckets, mostReads }: Listing,
  read: (from: Place, most: number) => Promise<Read<Item>>,
): Promise<{ readonly items: readonly Item[]; readonly next: string | undefined }> {
  let place: Place | undefined = after === undefined ? beginning : readPlace(after, buckets);
  const items: Item[] = [];
  for (let reads = 0; place !== undefined && items.length < limit && reads < mostReads; reads++) {
    const found: Read<Item> = await read(place, limit - items.length);
    items.push(...found.items);
    const { bucket }: Place = place;
    if (found.next !== undefined) place = { bucket, ...found.next };
    else place = bucket + 1 < buckets ? { ...beginning, bucket: bucket + 1 } : undefined;
  }
  return { items, next: place && placeText(place) };
}

export function placeText({ bucket, cursor, after }: Place): string {
  return Buffer.from(JSON.stringify([bucket, cursor, after])).toString("base64url");
}

/**
 * The inverse of `placeText`.
 * @throws InferenceError for a text that `placeText` has not made
 */
export function readPlace(text: string, buckets: number): Place {
  const [bucket, cursor, after, ...rest] = parsed(text);
  if (typeof bucket === "number" && Number.isSafeInteger(bucket) && bucket >= 0 && bucket < buckets) {
    if (isCursor(cursor) && typeof after === "string" && rest.length === 0) return { bucket, cursor, after };
  }
  throw new InferenceError("invalid_argument", "after must be the 'next' of a page that was answered before");
}

/** Redis takes cursors of up to 64 bits. */
function isCursor(cursor: unknown): cursor is string {
  return typeof cursor === "string" && /^\d{1,20}$/.test(cursor) && BigInt(cursor) < 2n ** 64n;
}

function parsed(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
    return Array.isArray(value) ? (value as unknown[]) : [];
  } catch {
    return [];
  }
}
