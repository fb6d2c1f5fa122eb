/** Waiting for something by looking again and again, for what tells nobody when it happens. */

/** Less than a test's own limit, so that the error says what the test waited in. */
const PATIENCE_MS = 25_000;

export interface Patience {
  /** How long to go on looking, in ms. */
  readonly patienceMs?: number;
  /** The pause between two looks, in ms. */
  readonly everyMs?: number;
}

/**
 * Resolves when the condition holds.
 * @throws Error when it does not within `patienceMs`
 */
export async function until(condition: () => boolean | Promise<boolean>, patienceMs = PATIENCE_MS): Promise<void> {
  const holds = await readUntil(
    async () => condition(),
    (held) => held,
    { patienceMs },
  );
  if (!holds) throw new Error("what was waited for did not happen");
}

/** @returns the first value for which `holds` is true; when the patience ends, the last one */
export async function readUntil<Value>(
  read: () => Promise<Value>,
  holds: (value: Value) => boolean,
  { patienceMs = PATIENCE_MS, everyMs = 10 }: Patience = {},
): Promise<Value> {
  const giveUpAt = performance.now() + patienceMs;
  for (;;) {
    const value = await read();
    if (holds(value) || performance.now() > giveUpAt) return value;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
