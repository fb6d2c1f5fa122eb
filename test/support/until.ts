/** Waits for a condition that sends no signal, by checking it again and again. */

/** Less than a test's own limit, so that the error names this wait. */
const PATIENCE_MS = 60_000;

export interface Patience {
  /** How long to keep looking, in ms. */
  readonly patienceMs?: number;
  /** The pause between two looks, in ms. If absent, the pauses grow with the time waited. */
  readonly everyMs?: number;
}

/**
 * The pauses between looks: a twentieth of the time waited so far, within these bounds. So a fast
 * change shows at once. A change that takes seconds does not cost hundreds of looks, each a request
 * to a process that is busy with this very change.
 */
const PAUSE_MS = { least: 10, most: 50, share: 1 / 20 };

/**
 * Resolves when the condition holds.
 * @throws Error if the condition does not hold within `patienceMs`
 */
export async function until(condition: () => boolean | Promise<boolean>, patienceMs = PATIENCE_MS): Promise<void> {
  const holds = await readUntil(
    async () => condition(),
    (held) => held,
    { patienceMs },
  );
  if (!holds) throw new Error("what was waited for did not happen");
}

/** @returns the first value for which `holds` is true; when the patience ends, the last value */
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
