/** The beginning of a page of a listing that Redis scans. */
export interface PageStart {
  readonly cursor: string;
  /** The last name of the answers so far at this cursor; "" for none. */
  readonly after: string;
}

export const firstPage: PageStart = { cursor: "0", after: "" };
