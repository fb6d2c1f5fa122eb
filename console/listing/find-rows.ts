/** Reads a list of the gateway, page after page, until enough rows fit. */
import type { Page } from "../../gateway/answers.js";

/** The most that a gateway gives at once. */
export const PAGE = 100;
/** Requests for one look. A user who wants to look further asks for the older rows. */
const MOST_REQUESTS = 20;

export interface Found<Row> {
  readonly rows: readonly Row[];
  /** Whether there are older rows. */
  readonly hasMore: boolean;
  /** The older rows begin behind the row with this id. */
  readonly last: string | undefined;
  readonly requests: number;
}

/**
 * A page of the gateway may be short, or empty, while there are more.
 * @param readPage reads the page behind an id
 * @param after undefined: from the newest row
 * @param enough the look ends when it has found so many rows
 */
export async function findRows<Row>(
  readPage: (after: string | undefined) => Promise<Page<Row>>,
  after: string | undefined,
  fits: (row: Row) => boolean,
  enough = PAGE,
): Promise<Found<Row>> {
  const rows: Row[] = [];
  let last = after;
  for (let requests = 1; ; requests++) {
    const page = await readPage(last);
    rows.push(...page.data.filter(fits));
    last = page.last_id ?? last;
    const hasMore = page.has_more && page.last_id !== null;
    if (!hasMore || rows.length >= enough || requests === MOST_REQUESTS) return { rows, hasMore, last, requests };
  }
}
