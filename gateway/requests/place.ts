/** The beginning of a listing's next page, as a text that the client sends back. */
import { InferenceError } from "#shared/errors.js";
import { firstPage, type PageStart } from "#shared/queue/pieces/page.js";

export interface Place extends PageStart {
  readonly bucket: number;
}

export const beginning: Place = { bucket: 0, ...firstPage };

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
