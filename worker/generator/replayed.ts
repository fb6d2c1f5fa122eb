/**
 * What a stream's records say that each of its choices has drawn so far. Read by hand: the schema would take 40 µs a record of the thread that renews the leases, and a worker may
 * take over a hundred streams of thousands of records at once.
 */

/**
 * @param records as they lie in the log, the final one aside
 * @param choices how many the request has
 * @throws TypeError or SyntaxError for what no worker has written
 */
export function tokensIn(records: readonly string[], choices: number): number[][] {
  const tokens = Array.from({ length: choices }, (): number[] => []);
  for (const record of records) {
    const { choices: deltas } = JSON.parse(record) as { readonly choices?: unknown };
    if (!Array.isArray(deltas)) throw new TypeError("a record without choices");
    for (const delta of deltas as unknown[]) add(delta, tokens);
  }
  return tokens;
}

function add(delta: unknown, tokens: readonly number[][]): void {
  const { index, tokens: drawn } = delta as { readonly index?: unknown; readonly tokens?: unknown };
  const into = typeof index === "number" ? tokens[index] : undefined;
  if (into === undefined || !Array.isArray(drawn)) throw new TypeError("a record of other choices");
  for (const token of drawn as unknown[]) {
    if (typeof token !== "number" || !Number.isSafeInteger(token) || token < 0) throw new TypeError("no token");
    into.push(token);
  }
}
