/** The filters of a list. Their values are in the address, so that a user can share a view. */

export interface Filter<Row> {
  /** In the address, and in the query of the gateway. */
  readonly name: string;
  readonly label: string;
  /** The values to choose from; absent if any text is a value. */
  readonly options?: readonly string[];
  /** Whether the gateway takes the text; absent if it takes each. A user may have typed a half. */
  readonly isWhole?: (text: string) => boolean;
  /** Whether a row fits; absent if the gateway itself filters. */
  readonly fits?: (row: Row, value: string) => boolean;
}

/** A look at a list. */
export interface Question<Row> {
  /** The query for the gateway. */
  readonly sent: Readonly<Record<string, string>>;
  /** Whether a row that the gateway gave fits the other filters. */
  readonly fits: (row: Row) => boolean;
  /** Names the look: two looks with the same name have the same answer. */
  readonly name: string;
}

/** @param query of the address */
export function questionOf<Row>(
  filters: readonly Filter<Row>[],
  query: Readonly<Record<string, string | undefined>>,
): Question<Row> {
  const set = filters.flatMap((filter) => {
    const value = query[filter.name]?.trim() ?? "";
    return value === "" || filter.isWhole?.(value) === false ? [] : [{ ...filter, value }];
  });
  const here = set.filter(({ fits }) => fits !== undefined);
  return {
    sent: Object.fromEntries(set.filter(({ fits }) => fits === undefined).map(({ name, value }) => [name, value])),
    fits: (row) => here.every(({ fits, value }) => fits?.(row, value) !== false),
    name: JSON.stringify([query["after"] ?? null, ...set.map(({ name, value }) => [name, value])]),
  };
}
