/** The list that the keys `j`, `k`, Enter and `.` move in: the last that the page shows. */

export interface KeyedList {
  /** Moves the focus by so many rows. */
  move(rows: number): void;
  /** Leads to the row's first action. @returns false if the row has none */
  act(): boolean;
}

const shown: KeyedList[] = [];

/** @returns a function to call when the list has gone */
export function addList(list: KeyedList): () => void {
  shown.push(list);
  return () => shown.splice(shown.indexOf(list), 1);
}

export function currentList(): KeyedList | undefined {
  return shown[0];
}
