/** Which rows of a long list are in the document. */

export interface Window {
  /** The first row, and the row behind the last. */
  readonly from: number;
  readonly to: number;
}

/** Rows above and below the visible part, so that a fast scroll shows no gap. */
const MORE = 12;

/**
 * @param top how far the list is scrolled, in px
 * @param height of the visible part, in px
 * @param rowHeight of each row, in px
 */
export function windowOf(top: number, height: number, rowHeight: number, rows: number): Window {
  const first = Math.max(0, Math.min(Math.floor(top / rowHeight), rows - 1));
  const visible = Math.ceil(height / rowHeight) + 1;
  return { from: Math.max(0, first - MORE), to: Math.min(rows, first + visible + MORE) };
}
