/** The records of several prompts' generations as they come. */
import type { TokenRecord } from "#shared/contract/generation.js";

export interface PromptRecord {
  readonly prompt: number;
  readonly record: TokenRecord;
}

/** Each next record is asked for when the one before it was taken, so a slow reader holds one of each. */
export async function* mergeRecords(
  sources: readonly AsyncGenerator<TokenRecord, void>[],
): AsyncGenerator<PromptRecord, void> {
  const waiting = new Map(sources.map((source, prompt) => [prompt, taken(source, prompt)]));
  try {
    while (waiting.size > 0) {
      const { source, prompt, result } = await Promise.race(waiting.values());
      if (result.done === true) waiting.delete(prompt);
      else {
        yield { prompt, record: result.value };
        waiting.set(prompt, taken(source, prompt));
      }
    }
  } finally {
    // Not awaited: one that waits for its next record ends when that comes, or when its own signal aborts.
    for (const source of sources) source.return().catch(() => undefined);
  }
}

async function taken(source: AsyncGenerator<TokenRecord, void>, prompt: number) {
  return { source, prompt, result: await source.next() };
}
