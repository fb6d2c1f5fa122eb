/**
 * Resolves when the condition holds.
 * @throws Error when it does not within `patienceMs`
 */
export async function until(condition: () => boolean | Promise<boolean>, patienceMs = 15_000): Promise<void> {
  const giveUpAt = performance.now() + patienceMs;
  while (!(await condition())) {
    if (performance.now() > giveUpAt) throw new Error("what was waited for did not happen");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
