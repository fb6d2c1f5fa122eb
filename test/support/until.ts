/** Waiting for something by looking again and again, for what tells nobody when it happens. */

/** Less than a test's own limit, so that the error says what the test waited in. */
const PATIENCE_MS = 60_000;

export interface Patience {
  /** How long to go on looking, in ms. */
  readonly patienceMs?: number;
  /** The pause between two looks, in ms. Without it, the pauses become longer as time goes by. */
  readonly everyMs?: number;
}

/**
 * The pauses between looks: a twentieth of the time waited so far, within these bounds. What comes
 * soon is seen at once, and what takes seconds costs no hundreds of looks, each of them a request
 * to a process that is busy with what is waited for.
 */
const PAUSE_MS = { least: 10, most: 50, share: 1 / 20 };

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
  { patienceMs = PATIENCE_MS, everyMs }: Patience = {},
): Promise<Value> {
  const since = performance.now();
  for (;;) {
    const value = await read();
    const waitedMs = performance.now() - since;
    if (holds(value) || waitedMs > patienceMs) return value;
    const growingMs = Math.min(PAUSE_MS.most, Math.max(PAUSE_MS.least, waitedMs * PAUSE_MS.share));
    await new Promise((resolve) => setTimeout(resolve, everyMs ?? growingMs));
  }
}
